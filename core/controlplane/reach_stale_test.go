package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

// A member reaches a database and is removed, or gets another role, before the use case has the database locked: nothing is done
// in the member's name, and nothing is shown.
func TestARightThatIsGoneByThen(t *testing.T) {
	for name, end := range map[string]func(context.Context, ports.Members, member.Membership) error{
		"removed": func(ctx context.Context, all ports.Members, m member.Membership) error { return all.Remove(ctx, m) },
		"another role": func(ctx context.Context, all ports.Members, m member.Membership) error {
			m.Role = account.Viewer
			return all.Set(ctx, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoleWorld(t)
			report := w.role("report")
			running := must(w.Backups.Start(w.ctx, w.here()))(t)
			r := w.asMember(account.Admin)
			its := must(w.Operations.Reach(w.ctx, r.Caller(), running.ID, account.See))(t)
			ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
				m, err := tx.Members().OfUser(ctx, w.db, r.Caller().Key.UserID)
				if err != nil {
					return err
				}
				return end(ctx, tx.Members(), m.Membership)
			}))
			before := len(w.log(w.db))
			_, err := w.Allowlist.Add(w.ctx, r, "203.0.113.7/32", "")
			for what, err := range map[string]error{
				"the allowlist":   err,
				"a reveal":        errOf(w.Roles.Reveal(w.ctx, r, report.ID)),
				"a role":          errOf(w.Roles.Create(w.ctx, r, wanted("other"))),
				"a backup":        errOf(w.Backups.Start(w.ctx, r)),
				"the environment": w.Databases.SetEnvironment(w.ctx, r, new(database.Production)),
			} {
				if !fault.Has(err, fault.DatabaseNotFound) {
					t.Errorf("%s: %v", what, err)
				}
			}
			refused(t, errOf(w.Operations.Cancel(w.ctx, its)), fault.OperationNotFound)
			equal(t, "entries in the log", len(w.log(w.db)), before)
		})
	}
}
