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

// changeJob is a change of a login with what it takes to carry it out.
type changeJob struct {
	record  database.Record
	change  role.Change
	current sealedPassword
}

// sealedPassword is the password that a login has; nothing is sealed where it has none.
type sealedPassword struct {
	sealed  []byte
	context string
}

// wish is what a change shall do, and who wants it.
type wish struct {
	kind      role.Kind
	key       idempotency.Key
	actor     audit.Actor
	requestID string
	password  newPassword // of a rotation
}

// newPassword is a password that no store has seen yet.
type newPassword struct{ text, verifier string }

// newPassword makes a password. Its verifier takes a millisecond to compute, so no database is locked meanwhile.
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

// changeRole commits the intent of a change of a role. The database is locked, and the change was admitted.
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
	return job, tx.Roles().Save(ctx, target.Begun(job.change, cell))
}

// changeManaged is changeRole for a login that came with the database.
func (b *base) changeManaged(
	ctx context.Context, tx ports.Tx, record database.Record, l ports.LoginSecret, w wish,
) (changeJob, error) {
	c := role.Change{Login: l.Login, Username: l.Username, CredentialGeneration: l.Generation}
	return b.addChange(ctx, tx, record, c, w, sealedPassword{l.Sealed, l.Context()})
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

// changeByKey finds the change that the key of a request has begun; false where it has begun none. The database is locked.
// MANAGED_ROLE_CONFLICT: the change is of another kind or login than asked for.
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

// jobOf reads what it takes to go on with a change. The database is locked.
func jobOf(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) (changeJob, error) {
	job := changeJob{record: record, change: c}
	if c.RoleID != "" {
		r, err := tx.Roles().Get(ctx, record.ID, c.RoleID)
		job.current = sealedPassword{r.Sealed, r.SecretContext()}
		return job, err
	}
	l, err := tx.Logins().Get(ctx, record.ID, c.Login)
	job.current = sealedPassword{l.Sealed, l.Context()}
	return job, err
}

// patient is how long a request waits for an agent. It does so also when the caller leaves meanwhile.
func (b *base) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), b.RoleWait)
}

// settling is for writing down what an agent has said after all the time that a request has for it.
func (b *base) settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleWait)
}

// settleWait bounds how long a store that hangs keeps a request.
const settleWait = 10 * time.Second
