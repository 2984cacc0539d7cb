package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/audit"
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

// wish is a requested change, and who requested it.
type wish struct {
	kind      role.Kind
	key       idempotency.Key
	actor     audit.Actor
	requestID string
	password  newPassword // of a rotation
}

// newPassword is a password that is not stored yet.
type newPassword struct{ text, verifier string }

// newPassword generates a password. Computing the verifier takes a millisecond, so call it before locking a database.
func (b *base) newPassword() newPassword {
	text := b.Entropy.Base62(passwordLength)
	return newPassword{text: text, verifier: credential.Verifier(text, b.Entropy.Salt(), credential.Iterations)}
}

func (b *base) userWish(reached Reached, k role.Kind, key idempotency.Key) wish {
	w := wish{kind: k, key: key, actor: reached.caller.Actor(), requestID: reached.caller.RequestID}
	if k == role.Rotation {
		w.password = b.newPassword()
	}
	return w
}

// internalKey is the key of a change that no request names.
func (b *base) internalKey(what string) idempotency.Key {
	return idempotency.Key(idempotency.InternalPrefix + what + "-" + newID[string](b.Entropy))
}

// changeRole commits the intent to change a role. The caller holds the database's lock and has had the change admitted.
func (b *base) changeRole(
	ctx context.Context, tx ports.Tx, record database.Record, target role.Role, cell machine.Cell[role.Status], w wish,
) (changeJob, error) {
	c := role.Change{
		RoleID: target.ID, Username: target.Username, CredentialGeneration: target.CredentialGeneration,
	}
	var err error
	if w.kind == role.Rotation {
		if c.ExpiresAt, err = b.validUntil(ctx, tx, record, b.Clock.Now()); err != nil {
			return changeJob{}, err
		}
	}
	job, err := b.addChange(ctx, tx, record, c, w, sealedPassword{target.Sealed, target.SecretContext()})
	if err != nil {
		return changeJob{}, err
	}
	job.verifier = target.Verifier
	return job, tx.Roles().Save(ctx, target.Begun(job.change, cell))
}

// changeManaged is changeRole for a login that was created with the database.
func (b *base) changeManaged(
	ctx context.Context, tx ports.Tx, record database.Record, l ports.LoginSecret, w wish,
) (changeJob, error) {
	c := role.Change{Login: l.Login, Username: l.Username, CredentialGeneration: l.Generation}
	job, err := b.addChange(ctx, tx, record, c, w, sealedPassword{l.Sealed, l.Context()})
	job.verifier = l.Verifier
	return job, err
}

func (b *base) addChange(
	ctx context.Context, tx ports.Tx, record database.Record, c role.Change, w wish, current sealedPassword,
) (changeJob, error) {
	record.RoleGeneration++
	if err := tx.Databases().Save(ctx, record); err != nil {
		return changeJob{}, err
	}
	now := b.Clock.Now()
	c.ID, c.DatabaseID, c.Generation = newID[id.OperationID](b.Entropy), record.ID, record.RoleGeneration
	c.Kind, c.Status, c.Key, c.Actor, c.RequestID = w.kind, role.Pending, w.key, w.actor, w.requestID
	c.CreatedAt, c.NotBefore = now, now.Add(role.Grace)
	if w.kind == role.Rotation {
		var err error
		c.CredentialGeneration++
		c.Verifier = w.password.verifier
		if c.Sealed, err = b.Secrets.Seal([]byte(w.password.text), c.SecretContext()); err != nil {
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

// patient limits how long a request waits for an agent. The request continues even if the caller disconnects.
func (b *base) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), b.RoleWait)
}

// settling gives time to store an agent's answer even when the request's time is used up.
func (b *base) settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleWait)
}

// settleWait bounds how long a hanging store can delay a request.
const settleWait = 10 * time.Second
