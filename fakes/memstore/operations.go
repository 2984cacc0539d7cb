package memstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

type operations struct{ session }

// isOpenOn finds the open operation of a database, beside one that changes a login.
func isOpenOn(db id.DatabaseID) func(operation.Operation) bool {
	return func(o operation.Operation) bool { return o.DatabaseID == db && !o.Logins && !o.Status.Final() }
}

func (o operations) Add(ctx context.Context, op operation.Operation) error {
	return o.write(ctx, func(s *state) error {
		if _, taken := s.operations.get(op.ID); taken {
			return o.refuse(errors.New("an operation of that ID exists"))
		}
		if _, ok := s.accounts.get(op.AccountID); !ok {
			return o.refuse(ports.ErrNoRow)
		}
		inTheWay := func(o operation.Operation) bool {
			return o.DatabaseID == op.DatabaseID && o.Logins == op.Logins && !o.Status.Final()
		}
		if !op.Status.Final() && s.operations.any(inTheWay) {
			return o.refuse(fault.New(fault.DatabaseStateConflict, "another operation of the database is open"))
		}
		s.operations.put(s.txid, op.ID, kept(op))
		o.tx.queued = true
		return nil
	})
}

// kept is the operation as a store keeps it: with its own bytes, and nil for an empty text.
func kept(op operation.Operation) operation.Operation {
	op.Input, op.Result = bytes.Clone(op.Input), bytes.Clone(op.Result)
	op.SealedInput, op.SealedResult = bytes.Clone(op.SealedInput), bytes.Clone(op.SealedResult)
	if len(op.Input) == 0 {
		op.Input = nil
	}
	if len(op.Result) == 0 {
		op.Result = nil
	}
	return op
}

func (o operations) Get(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	return read(ctx, o.session, func(s *state) (operation.Operation, error) { return found(s.operations.get(op)) })
}

func (o operations) Lock(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	if o.tx == nil {
		return operation.Operation{}, ports.ErrReadOnly
	}
	return o.Get(ctx, op)
}

func (o operations) Open(ctx context.Context, db id.DatabaseID) (operation.Operation, error) {
	return read(ctx, o.session, func(s *state) (operation.Operation, error) {
		for _, op := range s.operations.byKey {
			if isOpenOn(db)(op) {
				return op, nil
			}
		}
		return operation.Operation{}, ports.ErrNoRow
	})
}

func (o operations) Refused(ctx context.Context, kind operation.Kind) ([]ports.ServerTally, error) {
	return read(ctx, o.session, func(s *state) ([]ports.ServerTally, error) {
		begun := map[id.ServerID][]time.Time{}
		for _, op := range s.operations.byKey {
			if op.Kind == kind && !op.Status.Final() && op.ErrorCode != "" {
				begun[op.ServerID] = append(begun[op.ServerID], op.CreatedAt)
			}
		}
		return s.tallies(begun), nil
	})
}

// tallies counts something that each server has, by when it began.
func (s *state) tallies(begun map[id.ServerID][]time.Time) (list []ports.ServerTally) {
	for _, row := range s.servers.having(every, byName) {
		t := ports.ServerTally{Server: row.Name}
		if times := begun[row.ID]; len(times) > 0 {
			t.Tally = ports.Tally{Count: int64(len(times)), Oldest: new(slices.MinFunc(times, time.Time.Compare))}
		}
		list = append(list, t)
	}
	return list
}

func (o operations) List(
	ctx context.Context, db id.DatabaseID, kinds []operation.Kind, p ports.Page,
) ([]operation.Operation, error) {
	return read(ctx, o.session, func(s *state) ([]operation.Operation, error) {
		shown := func(op operation.Operation) bool { return op.DatabaseID == db && slices.Contains(kinds, op.Kind) }
		position := func(op operation.Operation) ports.Position {
			return ports.Position{At: op.CreatedAt, ID: string(op.ID)}
		}
		return pagedByID(s.operations.having(shown, nil), p, position, -1)
	})
}

func (o operations) Find(ctx context.Context, f ports.OperationFilter, p ports.Page) ([]ports.FoundOperation, error) {
	return read(ctx, o.session, func(s *state) ([]ports.FoundOperation, error) {
		shown := func(op operation.Operation) bool {
			return (f.DatabaseID == "" || op.DatabaseID == f.DatabaseID) && (f.ServerID == "" || op.ServerID == f.ServerID) &&
				(f.Kind == "" || op.Kind == f.Kind) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, op.Status))
		}
		position := func(op operation.Operation) ports.Position {
			return ports.Position{At: op.CreatedAt, ID: string(op.ID)}
		}
		page, err := pagedByID(s.operations.having(shown, nil), p, position, -1)
		var list []ports.FoundOperation
		for _, op := range page {
			db, _ := s.databases.get(op.DatabaseID)
			on, _ := s.servers.get(op.ServerID)
			list = append(list, ports.FoundOperation{Operation: op, DatabaseName: db.Name, ServerName: on.Name})
		}
		return list, err
	})
}

func (o operations) Hasten(ctx context.Context, op id.OperationID, now time.Time) error {
	return o.write(ctx, func(s *state) error {
		stored, ok := s.operations.get(op)
		if !ok || stored.Status.Final() {
			return ports.ErrNoRow
		}
		if now.Before(stored.NotBefore) {
			stored.NotBefore = now
		}
		s.operations.put(s.txid, op, stored)
		return nil
	})
}

func (o operations) SaveLeased(ctx context.Context, op operation.Operation) error {
	return o.write(ctx, func(s *state) error {
		stored, ok := s.operations.get(op.ID)
		if !ok || stored.Epoch != op.Epoch || stored.Status.Final() {
			return ports.ErrLeaseLost
		}
		next := kept(op)
		next.AccountID, next.DatabaseID, next.Kind = stored.AccountID, stored.DatabaseID, stored.Kind
		next.ServerID, next.OtherID = stored.ServerID, stored.OtherID
		next.Logins, next.SealedInput = stored.Logins, stored.SealedInput
		if next.Status.Final() {
			next.SealedInput = nil
		}
		next.Actor, next.RequestID, next.CreatedAt = stored.Actor, stored.RequestID, stored.CreatedAt
		next.CancelRequested = stored.CancelRequested || op.CancelRequested
		if stored.CancelRequested && !op.CancelRequested && stored.NotBefore.Before(op.NotBefore) {
			next.NotBefore = stored.NotBefore
		}
		s.operations.put(s.txid, op.ID, next)
		return nil
	})
}

func (o operations) RequestCancel(ctx context.Context, op operation.Operation) error {
	return o.write(ctx, func(s *state) error {
		stored, ok := s.operations.get(op.ID)
		if !ok || stored.Status.Final() {
			return ports.ErrNoRow
		}
		stored.CancelRequested = stored.CancelRequested || op.CancelRequested
		if stored.Status == operation.Queued {
			stored.Status, stored.Stage, stored.FinishedAt, stored.SealedInput = op.Status, op.Stage, op.FinishedAt, nil
		} else if op.NotBefore.Before(stored.NotBefore) {
			stored.NotBefore = op.NotBefore
		}
		s.operations.put(s.txid, op.ID, stored)
		return nil
	})
}
