package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// changeJob is a change of a login with everything needed to carry it out. begun is its operation where this process has just
// stored it.
type changeJob struct {
	record  database.Record
	change  role.Change
	current currentLogin
	begun   operation.Operation
}

// currentLogin is a login with its current password, which is encrypted and bound to context, and empty if it has none.
type currentLogin struct {
	username, verifier string
	generation         int64 // of its credential
	sealed             []byte
	context            string
}

func loginOfRole(r role.Role) currentLogin {
	return currentLogin{r.Username, r.Verifier, r.CredentialGeneration, r.Sealed, r.SecretContext()}
}

func loginOfDatabase(l ports.LoginSecret) currentLogin {
	return currentLogin{l.Username, l.Verifier, l.Generation, l.Sealed, l.Context()}
}

// intent is a change that is wanted: its kind and key, and who wants it. A rotation has its new password. One that is left is for
// whichever worker claims it.
type intent struct {
	role.Change
	password string
	left     bool
}

// newPassword generates a password. Computing the verifier takes a millisecond, so call it before locking a database.
func (d *driver) newPassword() (text, verifier string) {
	text = d.base.Entropy.Base62(credential.PasswordLength)
	return text, credential.Verifier(text, d.base.Entropy.Salt(), credential.Iterations)
}

func (d *driver) userIntent(reached access.Reached, k role.Kind, key idempotency.Key) intent {
	want := d.intentOf(reached.Caller().Actor(), k, key)
	want.RequestID = reached.Caller().RequestID
	return want
}

func (d *driver) intentOf(by audit.Actor, k role.Kind, key idempotency.Key) (want intent) {
	want.Kind, want.Key, want.Actor = k, key, by
	if k == role.Rotation {
		want.password, want.Verifier = d.newPassword()
	}
	return want
}

// internalKey is the key of a change that no request names.
func (d *driver) internalKey(what string) idempotency.Key {
	return idempotency.Key(idempotency.InternalPrefix + what + "-" + base.NewID[string](d.base.Entropy))
}

// changeRole commits the intent to change a role. The caller holds the database's lock and has had the change admitted.
func (d *driver) changeRole(
	ctx context.Context, tx ports.Tx, record database.Record, target role.Role, cell machine.Cell[role.Status], want intent,
) (changeJob, error) {
	want.RoleID = target.ID
	var err error
	if want.Kind == role.Rotation {
		if want.ExpiresAt, err = d.validUntil(ctx, tx, record, d.base.Clock.Now()); err != nil {
			return changeJob{}, err
		}
	}
	job, err := d.addChange(ctx, tx, record, want, loginOfRole(target))
	if err != nil {
		return changeJob{}, err
	}
	return job, tx.Roles().Save(ctx, target.Begun(job.change, cell))
}

// addChange commits the intent to change a login, which it names, as an operation that this process works on.
func (d *driver) addChange(
	ctx context.Context, tx ports.Tx, record database.Record, want intent, current currentLogin,
) (changeJob, error) {
	record.RoleGeneration++
	if err := tx.Databases().Save(ctx, record); err != nil {
		return changeJob{}, err
	}
	c, now := want.Change, d.base.Clock.Now()
	o := d.base.Work.Own(record, operation.Kind(c.Kind), nil, work.Origin{Actor: c.Actor, RequestID: c.RequestID})
	if want.left {
		o.Until = nil
	}
	c.ID, c.DatabaseID, c.Generation = o.ID, record.ID, record.RoleGeneration
	c.Username, c.CredentialGeneration = current.username, current.generation
	c.Status, c.CreatedAt = role.Pending, now
	if c.Kind == role.Rotation {
		var err error
		c.CredentialGeneration++
		if c.Sealed, err = d.base.Secrets.Seal([]byte(want.password), c.SecretContext()); err != nil {
			return changeJob{}, err
		}
	}
	if err := tx.RoleChanges().Add(ctx, c); err != nil {
		return changeJob{}, err
	}
	return changeJob{record, c, current, o}, tx.Operations().Add(ctx, o)
}

// changeByKey finds the change that an earlier request with the same key began; false if there is none. The caller holds the
// database's lock. MANAGED_ROLE_CONFLICT: that change has another kind or login than this request.
func changeByKey(
	ctx context.Context, tx ports.Tx, record database.Record, asked role.Change,
) (job changeJob, found bool, err error) {
	known, err := tx.RoleChanges().ByKey(ctx, record.ID, asked.Key)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return changeJob{}, false, nil
	case err != nil:
		return changeJob{}, false, err
	case known.RoleID != asked.RoleID, known.Login != asked.Login, known.Kind != asked.Kind:
		return changeJob{}, false,
			fault.New(fault.ManagedRoleConflict, "this %s was used with a different request", idempotency.Header)
	}
	job, err = jobOf(ctx, tx, record, known)
	return job, true, err
}

// jobOf reads everything needed to continue a change.
func jobOf(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) (changeJob, error) {
	if c.RoleID != "" {
		r, err := tx.Roles().Get(ctx, record.ID, c.RoleID)
		return changeJob{record: record, change: c, current: loginOfRole(r)}, err
	}
	l, err := tx.Logins().Get(ctx, record.ID, c.Login)
	return changeJob{record: record, change: c, current: loginOfDatabase(l)}, err
}
