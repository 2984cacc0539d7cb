package memstore

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type allowlist struct{ session }

func (a allowlist) List(ctx context.Context, db id.DatabaseID) ([]database.AllowlistEntry, error) {
	return read(ctx, a.session, func(s *state) ([]database.AllowlistEntry, error) {
		return s.allowlist.having(func(e database.AllowlistEntry) bool { return e.DatabaseID == db },
			func(a, b database.AllowlistEntry) int {
				return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
			}), nil
	})
}

func (a allowlist) Add(ctx context.Context, e database.AllowlistEntry) error {
	return a.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(e.DatabaseID); !ok {
			return a.refuse(ports.ErrNoRow)
		}
		same := func(other database.AllowlistEntry) bool {
			return other.DatabaseID == e.DatabaseID && other.CIDR == e.CIDR
		}
		if s.allowlist.any(same) {
			return a.refuse(fault.Invalid("cidr", "is already on the allowlist"))
		}
		s.allowlist.put(s.txid, e.ID, e)
		return nil
	})
}

func (a allowlist) Remove(
	ctx context.Context, db id.DatabaseID, entry id.AllowlistEntryID,
) (database.AllowlistEntry, error) {
	return write(ctx, a.session, func(s *state) (database.AllowlistEntry, error) {
		e, ok := s.allowlist.get(entry)
		if !ok || e.DatabaseID != db {
			return database.AllowlistEntry{}, ports.ErrNoRow
		}
		s.allowlist.delete(s.txid, entry)
		return e, nil
	})
}
