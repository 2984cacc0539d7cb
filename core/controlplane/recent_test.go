package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/rollout"
)

// What cannot be undone or shows a password is refused to a person whose last proof is too long ago, and changes nothing. A key
// has nothing to prove.
func TestAPersonProvesThemselvesAgain(t *testing.T) {
	c := newCrowd(t)
	ok(t, c.Operator.SetFeature(c.ctx, string(rollout.Delete), true))
	db := c.made("shop").Record.ID
	owner := c.person()
	tries := map[string]func(context.Context, access.Reached) error{
		"reveal a login": func(ctx context.Context, r access.Reached) error {
			return errOf(c.ManagedLogins.Reveal(ctx, r, database.RuntimeLogin))
		},
		"rotate a login": func(ctx context.Context, r access.Reached) error {
			return errOf(c.ManagedLogins.Rotate(ctx, r, database.RuntimeLogin, "0123456789abcdef"))
		},
		"reveal a role": func(ctx context.Context, r access.Reached) error { return errOf(c.Roles.Reveal(ctx, r, "none")) },
		"delete a backup": func(ctx context.Context, r access.Reached) error {
			return c.Backups.Delete(ctx, r, backup.Filename("none"))
		},
		"delete": func(ctx context.Context, r access.Reached) error { return errOf(c.Deletion.Delete(ctx, r)) },
	}
	gates := []rollout.Gate{rollout.Delete, rollout.AdditionalRoles}
	reach := func(by access.Caller) access.Reached {
		return must(c.Access.Reach(c.ctx, by, db, account.See, gates...))(t)
	}
	ok(t, c.Operator.Enroll(c.ctx, db, rollout.All))
	c.clock.Advance(person.Recent + time.Second)
	for what, try := range tries {
		if err := try(c.ctx, reach(owner)); !fault.Has(err, fault.LoginRequired) {
			t.Errorf("%s, long after the log-in: %v", what, err)
		}
		if err := try(c.ctx, reach(c.caller)); fault.Has(err, fault.LoginRequired) {
			t.Errorf("%s, by a key: %v", what, err)
		}
	}
}
