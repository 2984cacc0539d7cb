package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

type roles struct{ session }

func (r roles) Add(ctx context.Context, added role.Role) error {
	return r.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(added.DatabaseID); !ok {
			return r.refuse(ports.ErrNoRow)
		}
		used := s.roles.any(func(other role.Role) bool {
			return other.ID == added.ID || other.Username == added.Username ||
				other.DatabaseID == added.DatabaseID && (other.Ordinal == added.Ordinal || other.Key == added.Key)
		})
		if used {
			return r.refuse(errors.New("the role, its ordinal, its key or its username exists"))
		}
		return r.put(s, added)
	})
}

// put stores a row that keeps its promise: it has a password exactly while it is neither revoked nor removed.
func (r roles) put(s *state, row role.Role) error {
	none := row.Status == role.Revoked || row.Status == role.Removed
	if none != (row.Sealed == nil) || none != (row.Verifier == "") {
		return r.refuse(errors.New("the role has a password that it must not have, or lacks one"))
	}
	s.roles.put(s.txid, row.ID, ownRole(row))
	return nil
}

// ownRole returns a role whose secret its holder may change.
func ownRole(r role.Role) role.Role {
	r.Sealed = bytes.Clone(r.Sealed)
	return r
}

func (r roles) Get(ctx context.Context, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	return read(ctx, r.session, func(s *state) (role.Role, error) {
		stored, ok := s.roles.get(of)
		return found(ownRole(stored), ok && stored.DatabaseID == db)
	})
}

func (r roles) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error) {
	return read(ctx, r.session, func(s *state) (role.Role, error) {
		list := s.roles.having(func(r role.Role) bool { return r.DatabaseID == db && r.Key == key }, byOrdinal)
		if len(list) == 0 {
			return role.Role{}, ports.ErrNoRow
		}
		return ownRole(list[0]), nil
	})
}

func byOrdinal(a, b role.Role) int { return cmp.Compare(a.Ordinal, b.Ordinal) }

func (r roles) List(ctx context.Context, db id.DatabaseID) ([]role.Role, error) {
	return read(ctx, r.session, func(s *state) ([]role.Role, error) {
		list := s.roles.having(func(r role.Role) bool { return r.DatabaseID == db && r.Status != role.Removed }, byOrdinal)
		return each(list, ownRole), nil
	})
}

func (r roles) Save(ctx context.Context, changed role.Role) error {
	return r.write(ctx, func(s *state) error {
		stored, ok := s.roles.get(changed.ID)
		if !ok || stored.DatabaseID != changed.DatabaseID {
			return ports.ErrNoRow
		}
		changed.Ordinal, changed.Username, changed.AccessProfile = stored.Ordinal, stored.Username, stored.AccessProfile
		changed.ConnectionLimit, changed.CreatedAt, changed.Key = stored.ConnectionLimit, stored.CreatedAt, stored.Key
		changed.Fingerprint, changed.SetupID = stored.Fingerprint, stored.SetupID
		return r.put(s, changed)
	})
}

func (r roles) Expiring(ctx context.Context, now time.Time, beside operation.Beside, limit int) ([]role.Role, error) {
	return read(ctx, r.session, func(s *state) ([]role.Role, error) {
		over := func(r role.Role) bool {
			return r.Status == role.Ready && r.CredentialExpired(now) && s.rolesMayChange(r.DatabaseID, beside)
		}
		list := s.roles.having(over, func(a, b role.Role) int {
			return byTime(*a.CredentialExpiresAt, string(a.ID), *b.CredentialExpiresAt, string(b.ID))
		})
		return each(first(list, limit), ownRole), nil
	})
}

// rolesMayChange reports whether nothing keeps the roles of a database from being changed.
func (s *state) rolesMayChange(db id.DatabaseID, beside operation.Beside) bool {
	of, _ := s.databases.get(db)
	isOpen := isOpenOn(db)
	return of.Status == database.Active &&
		!s.roleChanges.any(func(c role.Change) bool { return c.DatabaseID == db && c.Open() }) &&
		!s.operations.any(func(o operation.Operation) bool {
			return isOpen(o) && !slices.Contains(beside.Always, o.Kind) &&
				(o.Status != operation.Queued || !slices.Contains(beside.UntilBegun, o.Kind))
		})
}
