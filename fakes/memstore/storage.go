package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

type storage struct{ session }

func byID(a, b database.Record) int { return cmp.Compare(a.ID, b.ID) }

func (v storage) Servers(ctx context.Context) ([]server.Server, error) {
	return read(ctx, v.session, func(s *state) ([]server.Server, error) {
		return s.servers.having(func(row server.Server) bool {
			return s.databases.any(func(r database.Record) bool { return r.ServerID == row.ID && !r.Status.Gone() })
		}, byName), nil
	})
}

func (v storage) OnServer(ctx context.Context, of id.ServerID, list []id.DatabaseID) ([]database.Record, error) {
	return read(ctx, v.session, func(s *state) ([]database.Record, error) {
		return s.records(func(r database.Record) bool {
			return r.ServerID == of && slices.Contains(list, r.ID) && !r.Status.Gone()
		}, byID), nil
	})
}

func (v storage) Ahead(
	ctx context.Context, of id.ServerID, what ports.DueWork, has map[id.DatabaseID]int64,
) ([]database.Record, error) {
	return read(ctx, v.session, func(s *state) ([]database.Record, error) {
		return s.records(func(r database.Record) bool {
			generation, listed := has[r.ID]
			known := r.AllowlistApplied
			if what == ports.DueSettings {
				known = r.SettingsApplied
			}
			return r.ServerID == of && listed && known > generation && !r.Status.Gone()
		}, byID), nil
	})
}

func (v storage) Between(ctx context.Context, of id.ServerID, after, last id.DatabaseID) ([]database.Record, error) {
	return read(ctx, v.session, func(s *state) ([]database.Record, error) {
		return s.records(func(r database.Record) bool {
			return r.ServerID == of && r.ID > after && (last == "" || r.ID <= last)
		}, byID), nil
	})
}

func (v storage) OfAccount(ctx context.Context, account id.AccountID) ([]id.DatabaseID, error) {
	return read(ctx, v.session, func(s *state) (list []id.DatabaseID, _ error) {
		for _, r := range s.records(func(r database.Record) bool { return r.AccountID == account && !r.Status.Gone() }, byID) {
			list = append(list, r.ID)
		}
		return list, nil
	})
}

func (v storage) BackupBytes(ctx context.Context, db id.DatabaseID) (int64, error) {
	return read(ctx, v.session, func(s *state) (int64, error) { return s.backupBytes(db), nil })
}

func (s *state) backupBytes(of id.DatabaseID) (sum int64) {
	for _, b := range s.backups.byKey {
		if b.DatabaseID == of && b.DeletingAt == nil && b.DamagedAt == nil && !b.Bound() {
			sum += b.SizeBytes
		}
	}
	return sum
}
