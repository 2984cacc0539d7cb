package base

import (
	"context"
	"errors"
	"maps"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Mandate is on whose behalf use cases of the operator are called, and why.
type Mandate struct {
	Operator string // the name
	Reason   string // empty where none was asked for
	// Holds is asked in each transaction that logs what was done: after an error, nothing of it is stored. nil: it holds.
	Holds func(ctx context.Context, tx ports.Tx) error
}

type mandateKey struct{}

// ByOperator has use cases be called in the name of an operator: what they log of audit.Operator says so.
func ByOperator(ctx context.Context, m Mandate) context.Context {
	return context.WithValue(ctx, mandateKey{}, m)
}

// Carried divides a mandate: into the context with which an order that was logged is carried out, whatever becomes of the
// operator meanwhile, and what the transaction that logs it has to ask.
func Carried(ctx context.Context) (carried context.Context, holds func(context.Context, ports.Tx) error) {
	m, has := ctx.Value(mandateKey{}).(Mandate)
	if !has || m.Holds == nil {
		return ctx, func(context.Context, ports.Tx) error { return nil }
	}
	holds, m.Holds = m.Holds, nil
	return ByOperator(ctx, m), holds
}

// details are those of an entry, with the operator and the reason where it has none of its own.
func (m Mandate) details(of audit.Details) audit.Details {
	of = maps.Clone(of)
	if of == nil {
		of = audit.Details{}
	}
	for name, text := range map[string]string{audit.OperatorDetail: m.Operator, audit.ReasonDetail: m.Reason} {
		if _, given := of[name]; !given && text != "" {
			of[name] = text
		}
	}
	return of
}

// Audit adds a line to the activity log of a database; to that of an account, where the record has nothing but the account; or
// of the installation, where it is empty.
func (p *Base) Audit(
	ctx context.Context, tx ports.Tx, r database.Record, by audit.Actor, what audit.Action, details audit.Details,
) error {
	if m, has := ctx.Value(mandateKey{}).(Mandate); has && by == audit.Operator {
		if m.Holds != nil {
			if err := m.Holds(ctx, tx); err != nil {
				return err
			}
		}
		details = m.details(details)
	}
	return tx.Audit().Add(ctx, audit.Entry{
		ID: NewID[id.AuditID](p.Entropy), At: p.Clock.Now(), AccountID: r.AccountID, DatabaseID: r.ID,
		Actor: by, Action: what, Details: details,
	})
}

// LockedUpdate is what a transaction does that has locked a database.
type LockedUpdate = func(ctx context.Context, tx ports.Tx, locked database.Record) error

// UpdateDatabase runs fn in a transaction that has locked a database; ErrNoRow where there is none.
func (p *Base) UpdateDatabase(ctx context.Context, db id.DatabaseID, fn LockedUpdate) error {
	return p.updateLocked(ctx, db, ports.ErrNoRow, fn)
}

// UpdateReached is UpdateDatabase for a caller's request: DATABASE_NOT_FOUND where there is none any more, or
// it is deleted.
func (p *Base) UpdateReached(ctx context.Context, db id.DatabaseID, fn LockedUpdate) error {
	return p.updateLocked(ctx, db, ErrDatabaseNotFound(), func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if locked.Status.Gone() {
			return ErrDatabaseNotFound()
		}
		return fn(ctx, tx, locked)
	})
}

// UpdateStored is UpdateReached for requests that may also concern a deleted database.
func (p *Base) UpdateStored(ctx context.Context, db id.DatabaseID, fn LockedUpdate) error {
	return p.updateLocked(ctx, db, ErrDatabaseNotFound(), fn)
}

func (p *Base) updateLocked(ctx context.Context, db id.DatabaseID, missing error, fn LockedUpdate) error {
	return p.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		locked, err := tx.Databases().Lock(ctx, db)
		if err != nil {
			return NotFound(err, missing)
		}
		return fn(ctx, tx, locked)
	})
}

// Change changes the record of a database, which it locks, in a transaction of the caller's.
func Change(ctx context.Context, tx ports.Tx, db id.DatabaseID, change func(*database.Record) error) error {
	stored, err := tx.Databases().Lock(ctx, db)
	if err == nil {
		err = change(&stored)
	}
	if err != nil {
		return err
	}
	return tx.Databases().Save(ctx, stored)
}

// Log logs something that is not a step of an operation.
func (p *Base) Log(ctx context.Context, what string, db id.DatabaseID, err error) {
	p.Journal.Log(ctx, ports.JournalEvent{What: what, DatabaseID: db, Err: err})
}

// NewID makes an ID.
func NewID[T ~string](e ports.Entropy) T { return id.FromBytes[T](e.UUID()) }

// NewToken makes the token of a link or a cookie, and what is stored of it.
func NewToken(e ports.Entropy) (text string, hash token.Hash) {
	text = e.Base62(token.Characters)
	return text, token.Of(text)
}

// ErrDatabaseNotFound is the error for a database that is missing or out of reach.
func ErrDatabaseNotFound() error { return fault.New(fault.DatabaseNotFound, "no such database") }

// NotFound replaces ErrNoRow with the error of a resource.
func NotFound(err, as error) error {
	if errors.Is(err, ports.ErrNoRow) {
		return as
	}
	return err
}
