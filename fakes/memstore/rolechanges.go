package memstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

type roleChanges struct{ session }

func (c roleChanges) Add(ctx context.Context, added role.Change) error {
	return c.write(ctx, func(s *state) error {
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
		if _, ok := s.roles.get(added.RoleID); added.RoleID != "" && !ok {
			return c.refuse(ports.ErrNoRow)
		}
		return c.put(s, added)
	})
}

// put stores a row that keeps its promises: it is of a role or of a login, has an end exactly where it has ended, and a password
// exactly while it is a pending rotation.
func (c roleChanges) put(s *state, row role.Change) error {
	if (row.RoleID == "") == (row.Login == "") || row.Open() != (row.EndedAt == nil) ||
		(row.Sealed != nil) != (row.Open() && row.Kind == role.Rotation) {
		return c.refuse(errors.New("the change has a target, an end or a password that it must not have, or lacks one"))
	}
	s.roleChanges.put(s.txid, row.ID, ownChange(row))
	return nil
}

// ownChange returns a change whose secret its holder may change.
func ownChange(c role.Change) role.Change {
	c.Sealed = bytes.Clone(c.Sealed)
	return c
}

func (c roleChanges) Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error) {
	return read(ctx, c.session, func(s *state) (role.Change, error) {
		stored, ok := s.roleChanges.get(change)
		return found(ownChange(stored), ok && stored.DatabaseID == db)
	})
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
	list := s.roleChanges.having(match, nil)
	if len(list) == 0 {
		return role.Change{}, ports.ErrNoRow
	}
	return ownChange(list[0]), nil
}

func (c roleChanges) Save(ctx context.Context, changed role.Change) error {
	return c.write(ctx, func(s *state) error {
		stored, ok := s.roleChanges.get(changed.ID)
		if !ok || stored.DatabaseID != changed.DatabaseID {
			return ports.ErrNoRow
		}
		stored.Status, stored.Verifier, stored.Sealed = changed.Status, changed.Verifier, changed.Sealed
		stored.Generation, stored.CredentialGeneration = changed.Generation, changed.CredentialGeneration
		stored.Revealed, stored.EndedAt = changed.Revealed, changed.EndedAt
		stored.Refusal = changed.Refusal
		return c.put(s, stored)
	})
}

func (c roleChanges) List(ctx context.Context, db id.DatabaseID) ([]role.Change, error) {
	return read(ctx, c.session, func(s *state) ([]role.Change, error) {
		list := s.roleChanges.having(func(c role.Change) bool { return c.DatabaseID == db }, func(a, b role.Change) int {
			return byTime(b.CreatedAt, string(b.ID), a.CreatedAt, string(a.ID))
		})
		return each(list, ownChange), nil
	})
}

func (c roleChanges) Stuck(ctx context.Context) ([]ports.ServerTally, error) {
	return read(ctx, c.session, func(s *state) ([]ports.ServerTally, error) {
		begun := map[id.ServerID][]time.Time{}
		for _, c := range s.roleChanges.byKey {
			if c.Open() && c.Refusal != "" {
				db, _ := s.databases.get(c.DatabaseID)
				begun[db.ServerID] = append(begun[db.ServerID], c.CreatedAt)
			}
		}
		return s.tallies(begun), nil
	})
}
