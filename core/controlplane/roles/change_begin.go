package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// changeJob is a change of a login with everything needed to carry it out.
type changeJob struct {
	record   database.Record
	change   role.Change
	current  sealedPassword
	verifier string // of the current password
}

// sealedPassword is a login's current password, encrypted; empty if it has none.
type sealedPassword struct {
	sealed  []byte
	context string
}

// intent is a requested change, and who requested it.
type intent struct {
	kind      role.Kind
	key       idempotency.Key
	actor     audit.Actor
	requestID string
	password  newPassword // of a rotation
}

// newPassword is a password that is not stored yet.
type newPassword struct{ text, verifier string }

// newPassword generates a password. Computing the verifier takes a millisecond, so call it before locking a database.
func (d *driver) newPassword() newPassword {
	text := d.plane.Entropy.Base62(credential.PasswordLength)
	return newPassword{text: text, verifier: credential.Verifier(text, d.plane.Entropy.Salt(), credential.Iterations)}
}

func (d *driver) userIntent(reached access.Reached, k role.Kind, key idempotency.Key) intent {
	want := intent{kind: k, key: key, actor: reached.Caller().Actor(), requestID: reached.Caller().RequestID}
	if k == role.Rotation {
		want.password = d.newPassword()
	}
	return want
}

// internalKey is the key of a change that no request names.
func (d *driver) internalKey(what string) idempotency.Key {
	return idempotency.Key(idempotency.InternalPrefix + what + "-" + plane.NewID[string](d.plane.Entropy))
}

// changeRole commits the intent to change a role. The caller holds the database's lock and has had the change admitted.
func (d *driver) changeRole(
	ctx context.Context, tx ports.Tx, record database.Record, target role.Role, cell machine.Cell[role.Status], want intent,
) (changeJob, error) {
	c := role.Change{
		RoleID: target.ID, Username: target.Username, CredentialGeneration: target.CredentialGeneration,
	}
	var err error
	if want.kind == role.Rotation {
		if c.ExpiresAt, err = d.validUntil(ctx, tx, record, d.plane.Clock.Now()); err != nil {
			return changeJob{}, err
		}
	}
	job, err := d.addChange(ctx, tx, record, c, want, sealedPassword{target.Sealed, target.SecretContext()})
	if err != nil {
		return changeJob{}, err
	}
	job.verifier = target.Verifier
	return job, tx.Roles().Save(ctx, target.Begun(job.change, cell))
}

// changeManaged is changeRole for a login that was created with the database.
func (d *driver) changeManaged(
	ctx context.Context, tx ports.Tx, record database.Record, l ports.LoginSecret, want intent,
) (changeJob, error) {
	c := role.Change{Login: l.Login, Username: l.Username, CredentialGeneration: l.Generation}
	job, err := d.addChange(ctx, tx, record, c, want, sealedPassword{l.Sealed, l.Context()})
	job.verifier = l.Verifier
	return job, err
}

func (d *driver) addChange(
	ctx context.Context, tx ports.Tx, record database.Record, c role.Change, want intent, current sealedPassword,
) (changeJob, error) {
	record.RoleGeneration++
	if err := tx.Databases().Save(ctx, record); err != nil {
		return changeJob{}, err
	}
	now := d.plane.Clock.Now()
	c.ID, c.DatabaseID, c.Generation = plane.NewID[id.OperationID](d.plane.Entropy), record.ID, record.RoleGeneration
	c.Kind, c.Status, c.Key, c.Actor, c.RequestID = want.kind, role.Pending, want.key, want.actor, want.requestID
	c.CreatedAt, c.NotBefore = now, now.Add(role.Grace)
	if want.kind == role.Rotation {
		var err error
		c.CredentialGeneration++
		c.Verifier = want.password.verifier
		if c.Sealed, err = d.plane.Secrets.Seal([]byte(want.password.text), c.SecretContext()); err != nil {
			return changeJob{}, err
		}
	}
	return changeJob{record: record, change: c, current: current}, tx.RoleChanges().Add(ctx, c)
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

// jobOf reads everything needed to continue a change. The caller holds the database's lock.
func jobOf(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) (changeJob, error) {
	job := changeJob{record: record, change: c}
	if c.RoleID != "" {
		r, err := tx.Roles().Get(ctx, record.ID, c.RoleID)
		job.current, job.verifier = sealedPassword{r.Sealed, r.SecretContext()}, r.Verifier
		return job, err
	}
	l, err := tx.Logins().Get(ctx, record.ID, c.Login)
	job.current, job.verifier = sealedPassword{l.Sealed, l.Context()}, l.Verifier
	return job, err
}
