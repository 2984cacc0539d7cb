// Package clones makes new databases that begin with what others of the same account hold.
package clones

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Clones clones databases (spec, the limited-rollout routes).
type Clones struct {
	base     *base.Base
	settings *settings.Settings
	admits   Admits
}

// Admits decides whether a database can be had back as it was at a moment, as Moments.Admit does.
type Admits func(ctx context.Context, r access.Reached, at time.Time) error

// New makes the use cases, and registers their kind.
func New(p *base.Base, s *settings.Settings, a Admits) *Clones {
	c := &Clones{base: p, settings: s, admits: a}
	c.register()
	return c
}

// Started is a clone that is being made, with its password, and the operation of its source that makes it.
type Started struct {
	Operation operation.Operation
	Clone     provision.Made
}

// Start stores a clone and queues its making. With a key, a repeated request returns the same clone and its operation as they are
// then. As of a moment, a deleted source can be cloned, too.
//
// KEY_SCOPE_DENIED: no full-account key. FORBIDDEN: anyone but the owner. VALIDATION_ERROR: a field is wrong, or the name is
// reserved or taken. PLAN_LIMIT: no more databases. AGENT_ERROR: the source's server has no room for another one.
// DATABASE_STATE_CONFLICT: the key was used for another request, or its clone was not made. The other errors are those of
// clone.Scene and, for a moment, of Moments.Admit.
func (c *Clones) Start(ctx context.Context, reached access.Reached, q clone.Request) (s Started, err error) {
	if err := reached.Caller().RequireFullAccount(); err != nil {
		return s, err
	}
	if err := reached.Permit(account.Own, rollout.Clone); err != nil {
		return s, err
	}
	if q, err = q.Check(); err != nil {
		return s, err
	}
	if err := c.asOf(ctx, reached, q); err != nil {
		return s, err
	}
	draft, err := provision.New(c.base, reached.Caller().Account, q.Draft(reached.Record()))
	if err != nil {
		return s, err
	}
	var owner ports.LoginSecret
	known := false
	err = reached.Update(ctx, c.base, func(ctx context.Context, tx ports.Tx, source database.Record) (err error) {
		var op id.OperationID
		if op, known, err = c.reserve(ctx, tx, source, reached, q, draft); err != nil {
			return err
		}
		s, owner, err = started(ctx, tx, reached.Caller().Viewer(), op)
		return err
	})
	if err != nil {
		return Started{}, err
	}
	if !known {
		c.base.Work.Reserved(Kind)
	}
	s.Clone, err = provision.Reveal(c.base, s.Clone.Record, owner)
	if err == nil && known && s.Operation.Status.Final() {
		s.Clone = provision.WithoutStalePassword(ctx, c.base, reached.Caller(), s.Clone, owner)
	}
	if err == nil && known {
		s.Clone, err = provision.ShownAgain(ctx, c.base, reached.Caller(), s.Clone)
	}
	return s, err
}

// asOf decides about the moment of a request, of which the first request with its key has asked already.
func (c *Clones) asOf(ctx context.Context, reached access.Reached, q clone.Request) error {
	switch {
	case q.At == nil && reached.Record().Status.Gone():
		return base.ErrDatabaseNotFound()
	case q.At == nil:
		return nil
	}
	if known, err := reached.Asked(ctx, c.base, clone.KeyRoute, q.Key); known || err != nil {
		return err
	}
	return c.admits(ctx, reached, *q.At)
}

// reserve commits the intent: key, record, logins, operation and its use of a backup in one transaction, which has locked the
// source. If the key was used before, it returns the operation that was queued with it.
func (c *Clones) reserve(
	ctx context.Context, tx ports.Tx, source database.Record, by access.Reached, q clone.Request, draft provision.Draft,
) (op id.OperationID, known bool, err error) {
	o := c.base.Work.Queued(source, Kind, nil, by.Caller().Origin())
	if q.Key != "" {
		stored, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
			AccountID: source.AccountID, Route: clone.KeyRoute, Key: q.Key, Fingerprint: q.Fingerprint(source.ID),
			ResourceID: string(o.ID), CreatedAt: o.CreatedAt,
		})
		if err != nil {
			return "", false, err
		}
		if !fresh {
			return id.OperationID(stored.ResourceID), true, stored.Replay(q.Fingerprint(source.ID), fault.DatabaseStateConflict)
		}
	}
	return o.ID, false, c.begin(ctx, tx, source, q, o, draft, provision.Making{})
}

// admit decides over the clone, and from which file it is made.
func (c *Clones) admit(
	ctx context.Context, tx ports.Tx, source database.Record, q clone.Request, draft *provision.Draft,
) (input clone.Input, err error) {
	open, err := tx.Operations().Open(ctx, source.ID)
	if err = base.NotFound(err, nil); err != nil {
		return input, err
	}
	s := clone.Scene{Source: source, Open: open.ID}
	if q.Filename == nil {
		admits := s.Admits
		if q.At != nil {
			admits = s.AdmitsThen
		}
		if err := admits(); err != nil {
			return input, err
		}
		taken, err := tx.Backups().Names(ctx, source.ID)
		return clone.Input{Filename: backup.FreeFilename(c.base.Clock.Now(), taken), Fresh: true, At: q.At}, err
	}
	found, err := tx.Backups().Get(ctx, source.ID, *q.Filename)
	of := &found
	if errors.Is(err, ports.ErrNoRow) {
		of, err = nil, nil
	}
	if err == nil {
		err = s.AdmitsFrom(of, c.base.Clock.Now())
	}
	if err != nil {
		return input, err
	}
	draft.Record.RolesBarred = !of.RoleManifest
	return clone.Input{Filename: *q.Filename, ManifestSHA256: of.ManifestSHA256}, nil
}

// add stores the operation, its use of the backup, and a line of the source's activity log.
func (c *Clones) add(
	ctx context.Context, tx ports.Tx, source database.Record, o operation.Operation, input clone.Input, made database.Record,
) error {
	if err := tx.Operations().Add(ctx, o); err != nil {
		return err
	}
	details := audit.Details{"operationId": string(o.ID), "databaseId": string(made.ID), "name": made.Name}
	if !input.Fresh {
		use := operation.Use{OperationID: o.ID, DatabaseID: source.ID, Backup: string(input.Filename)}
		if err := tx.Uses().Add(ctx, use); err != nil {
			return err
		}
		details["filename"] = string(input.Filename)
	}
	if input.At != nil {
		details[recovery.Field] = recovery.Text(*input.At)
	}
	maps.Copy(details, input.Ordered.Details())
	return c.base.Audit(ctx, tx, source, o.Actor, audit.CloneRequested, details)
}

// started reads a clone and its operation. It is called in the transaction that has locked the source, so that the operation does
// not end meanwhile: the first request shows what it has stored, however soon that fails.
func started(
	ctx context.Context, tx ports.Tx, by database.Viewer, op id.OperationID,
) (s Started, owner ports.LoginSecret, err error) {
	if s.Operation, err = tx.Operations().Get(ctx, op); err != nil {
		return s, owner, err
	}
	input, err := operation.Decode[clone.Input](s.Operation.Input)
	if err != nil {
		return s, owner, err
	}
	if s.Clone.Record, _, err = access.See(ctx, tx, by, input.DatabaseID); err != nil {
		return s, owner, base.NotFound(err, errGone(s.Operation))
	}
	owner, err = tx.Logins().Get(ctx, input.DatabaseID, database.OwnerLogin)
	return s, owner, err
}

// errGone says why there is no such clone any more.
func errGone(o operation.Operation) error {
	f := o.Failure()
	switch {
	case f != nil:
		return fault.New(fault.DatabaseStateConflict, "the clone could not be made: %s: %s", f.Code, f.Message)
	case o.Status == operation.Canceled:
		return fault.New(fault.DatabaseStateConflict, "the clone was canceled")
	}
	return fault.New(fault.DatabaseStateConflict, "the clone is gone")
}
