package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

type roleChanges struct{ session }

func (c roleChanges) Add(ctx context.Context, added role.Change) error {
	s, err := c.writing(ctx)
	if err != nil {
		return err
	}
	if _, ok := s.databases.get(added.DatabaseID); !ok {
		return c.refuse(ports.ErrNoRow)
	}
	inTheWay := s.roleChanges.any(func(other role.Change) bool {
		return other.ID == added.ID ||
			other.DatabaseID == added.DatabaseID && (other.Open() && added.Open() || other.Key == added.Key)
	})
	if inTheWay {
		return c.refuse(fault.New(fault.ManagedRoleConflict, "another change of the database's logins is unfinished"))
	}
	added.Sealed = bytes.Clone(added.Sealed)
	s.roleChanges.put(added.ID, added)
	return nil
}

func (c roleChanges) Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error) {
	s, err := c.reading(ctx)
	if err != nil {
		return role.Change{}, err
	}
	stored, ok := s.roleChanges.get(change)
	return found(stored, ok && stored.DatabaseID == db)
}

func (c roleChanges) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Change, error) {
	return c.only(ctx, func(c role.Change) bool { return c.DatabaseID == db && c.Key == key })
}

func (c roleChanges) Pending(ctx context.Context, db id.DatabaseID) (role.Change, error) {
	return c.only(ctx, func(c role.Change) bool { return c.DatabaseID == db && c.Open() })
}

func (c roleChanges) only(ctx context.Context, match func(role.Change) bool) (role.Change, error) {
	s, err := c.reading(ctx)
	if err != nil {
		return role.Change{}, err
	}
	list := s.roleChanges.having(match, byNotBefore)
	if len(list) == 0 {
		return role.Change{}, ports.ErrNoRow
	}
	return list[0], nil
}

func byNotBefore(a, b role.Change) int {
	return byTime(a.NotBefore, string(a.ID), b.NotBefore, string(b.ID))
}

func (c roleChanges) Save(ctx context.Context, changed role.Change) error {
	s, err := c.writing(ctx)
	if err != nil {
		return err
	}
	stored, ok := s.roleChanges.get(changed.ID)
	if !ok || stored.DatabaseID != changed.DatabaseID {
		return ports.ErrNoRow
	}
	stored.Status, stored.Verifier, stored.Sealed = changed.Status, changed.Verifier, bytes.Clone(changed.Sealed)
	stored.Revealed, stored.EndedAt = changed.Revealed, changed.EndedAt
	stored.Attempts, stored.NotBefore = changed.Attempts, changed.NotBefore
	s.roleChanges.put(changed.ID, stored)
	return nil
}

func (c roleChanges) Due(ctx context.Context, now time.Time, limit int) ([]role.Change, error) {
	s, err := c.reading(ctx)
	if err != nil {
		return nil, err
	}
	due := func(c role.Change) bool { return c.Open() && !c.NotBefore.After(now) }
	return first(s.roleChanges.having(due, byNotBefore), limit), nil
}
