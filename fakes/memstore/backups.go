package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

type backups struct{ session }

func (b backups) Add(ctx context.Context, row backup.Backup) error {
	return b.write(ctx, func(s *state) error {
		if s.backups.any(func(other backup.Backup) bool { return other.OperationID == row.OperationID }) {
			return nil
		}
		key := backupKey{row.DatabaseID, row.Filename}
		if _, ok := s.databases.get(row.DatabaseID); !ok {
			return b.refuse(ports.ErrNoRow)
		}
		if _, taken := s.backups.get(key); taken {
			return b.refuse(fault.New(fault.BackupConflict, "a backup of that name exists"))
		}
		s.backups.put(s.txid, key, row)
		return nil
	})
}

func (b backups) Get(ctx context.Context, db id.DatabaseID, filename backup.Filename) (backup.Backup, error) {
	return read(ctx, b.session, func(s *state) (backup.Backup, error) {
		row, ok := s.backups.get(backupKey{db, filename})
		return found(s.ranked(row), ok && row.DeletingAt == nil)
	})
}

func (b backups) List(ctx context.Context, db id.DatabaseID, p ports.Page) ([]backup.Backup, error) {
	return read(ctx, b.session, func(s *state) ([]backup.Backup, error) {
		if p.After != nil {
			if _, err := backup.ParseFilename(p.After.ID); err != nil || p.After.Key != "" {
				return nil, ports.ErrCursor()
			}
		}
		kept := func(row backup.Backup) bool { return row.DatabaseID == db && row.DeletingAt == nil }
		position := func(row backup.Backup) ports.Position {
			return ports.Position{At: row.CreatedAt, ID: string(row.Filename)}
		}
		page := paged(s.backups.having(kept, nil), p, position, -1)
		for i, row := range page {
			page[i] = s.ranked(row)
		}
		return page, nil
	})
}

func (b backups) Names(ctx context.Context, db id.DatabaseID) ([]backup.Filename, error) {
	return read(ctx, b.session, func(s *state) ([]backup.Filename, error) {
		var names []backup.Filename
		for key := range s.backups.byKey {
			if key.database == db {
				names = append(names, key.filename)
			}
		}
		for _, o := range s.operations.byKey {
			promised, err := operation.Decode[operation.BackupInput](o.Input)
			if isOpenOn(db)(o) && err == nil && promised.Filename != "" {
				names = append(names, backup.Filename(promised.Filename))
			}
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	})
}

func (b backups) MarkDeleting(
	ctx context.Context, db id.DatabaseID, filename backup.Filename, now time.Time,
) (backup.Backup, error) {
	return write(ctx, b.session, func(s *state) (backup.Backup, error) {
		key := backupKey{db, filename}
		row, ok := s.backups.get(key)
		if !ok {
			return backup.Backup{}, ports.ErrNoRow
		}
		if row.DeletingAt == nil {
			row.DeletingAt = &now
		}
		s.backups.put(s.txid, key, row)
		return row, nil
	})
}

func (b backups) Save(ctx context.Context, row backup.Backup) error {
	return b.write(ctx, func(s *state) error {
		key := backupKey{row.DatabaseID, row.Filename}
		stored, ok := s.backups.get(key)
		if !ok || stored.OperationID != row.OperationID || stored.DeletingAt != nil {
			return ports.ErrNoRow
		}
		stored.ExpiresAt, stored.VerifiedAt = row.ExpiresAt, row.VerifiedAt
		stored.LastReadAt, stored.DamagedAt, stored.KeptBy = row.LastReadAt, row.DamagedAt, row.KeptBy
		s.backups.put(s.txid, key, stored)
		return nil
	})
}

func (b backups) Remove(ctx context.Context, db id.DatabaseID, filename backup.Filename) error {
	return b.write(ctx, func(s *state) error {
		s.backups.delete(s.txid, backupKey{db, filename})
		return nil
	})
}

func (b backups) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedBackup, error) {
	return read(ctx, b.session, func(s *state) ([]ports.DoomedBackup, error) {
		doomed := func(row backup.Backup) bool {
			of, _ := s.databases.get(row.DatabaseID)
			return row.DeletingAt != nil || s.ranked(row).Expired(now) && !of.Status.Gone()
		}
		rows := s.backups.having(doomed, func(a, b backup.Backup) int {
			return cmp.Or(end(a).Compare(end(b)), cmp.Compare(a.DatabaseID, b.DatabaseID), cmp.Compare(a.Filename, b.Filename))
		})
		var list []ports.DoomedBackup
		for _, row := range first(rows, limit) {
			of, _ := s.databases.get(row.DatabaseID)
			list = append(list, ports.DoomedBackup{
				Backup: s.ranked(row), ServerID: cmp.Or(row.KeptBy, of.ServerID), AccountID: of.AccountID,
			})
		}
		return list, nil
	})
}

// ranked is a backup as it is among those of its database.
func (s *state) ranked(b backup.Backup) backup.Backup {
	b.Last = !s.backups.any(func(other backup.Backup) bool {
		return other.DatabaseID == b.DatabaseID && other.DeletingAt == nil && other.Outlasts(b)
	})
	return b
}

// end is when a doomed backup was to go: the earlier of its expiry and its mark.
func end(b backup.Backup) time.Time {
	switch {
	case b.DeletingAt == nil:
		return *b.ExpiresAt
	case b.ExpiresAt == nil || b.DeletingAt.Before(*b.ExpiresAt):
		return *b.DeletingAt
	}
	return *b.ExpiresAt
}
