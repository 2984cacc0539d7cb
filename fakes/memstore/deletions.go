package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

type deletions struct{ session }

// Add implements ports.Deletions.
func (d deletions) Add(ctx context.Context, t deletion.Tombstone) (deletion.Tombstone, error) {
	return write(ctx, d.session, func(s *state) (deletion.Tombstone, error) {
		if _, ok := s.databases.get(t.DatabaseID); !ok {
			return t, d.refuse(ports.ErrNoRow)
		}
		s.forget(t.DatabaseID)
		t.Access = deletion.Access{Allowlist: s.found(t.DatabaseID).Allowlist}
		of := func(m member.Membership) bool { return m.DatabaseID == t.DatabaseID }
		for _, m := range s.memberships.having(of, nil) {
			key := membershipKey{t.DatabaseID, m.UserID}
			s.tombstoneMembers.put(s.txid, key, key)
			t.Members++
		}
		for b := range s.bindings.byKey {
			if key, _ := s.keys.get(b.key); b.database == t.DatabaseID && key.RevokedAt == nil {
				s.tombstoneKeys.put(s.txid, b, b)
				t.Keys++
			}
		}
		s.tombstones.put(s.txid, t.DatabaseID, t)
		return t, nil
	})
}

// forget drops a tombstone with its snapshot.
func (s *state) forget(db id.DatabaseID) {
	s.tombstones.delete(s.txid, db)
	s.tombstoneMembers.remove(s.txid, func(k, _ membershipKey) bool { return k.database == db })
	s.tombstoneKeys.remove(s.txid, func(b, _ binding) bool { return b.database == db })
}

// found counts what of a snapshot is stored.
func (s *state) found(db id.DatabaseID) (a deletion.Access) {
	of := func(e database.AllowlistEntry) bool { return e.DatabaseID == db }
	a.Allowlist = len(s.allowlist.having(of, nil))
	a.Members = len(s.tombstoneMembers.having(func(k membershipKey) bool { return k.database == db }, nil))
	a.Keys = len(s.tombstoneKeys.having(func(b binding) bool { return b.database == db }, nil))
	return a
}

// LoseMembers drops who was a member of a deleted database, which nothing in the service does.
func (s *Store) LoseMembers(of id.DatabaseID) {
	s.damage(func(now *state) {
		now.tombstoneMembers.remove(now.txid, func(k, _ membershipKey) bool { return k.database == of })
	})
}

// LoseKeys does the same to the keys.
func (s *Store) LoseKeys(of id.DatabaseID) {
	s.damage(func(now *state) {
		now.tombstoneKeys.remove(now.txid, func(b, _ binding) bool { return b.database == of })
	})
}

// sceneOf is what is known of a tombstone's database.
func (s *state) sceneOf(t deletion.Tombstone) deletion.Scene {
	r, _ := s.databases.get(t.DatabaseID)
	scene := deletion.Scene{Database: s.record(r), Tombstone: t, Found: s.found(t.DatabaseID)}
	if b, ok := s.backups.get(backupKey{t.DatabaseID, t.Filename}); ok && b.DeletingAt == nil {
		scene.Backup = &b
	}
	return scene
}

// Get implements ports.Deletions.
func (d deletions) Get(ctx context.Context, db id.DatabaseID) (deletion.Scene, error) {
	return read(ctx, d.session, func(s *state) (deletion.Scene, error) {
		t, ok := s.tombstones.get(db)
		if !ok {
			return deletion.Scene{}, ports.ErrNoRow
		}
		return s.sceneOf(t), nil
	})
}

// gone are the tombstones of databases with one of these statuses.
func (s *state) gone(match func(database.Record, deletion.Tombstone) bool) []deletion.Tombstone {
	return s.tombstones.having(func(t deletion.Tombstone) bool {
		r, ok := s.databases.get(t.DatabaseID)
		return ok && r.Status.Gone() && match(r, t)
	}, nil)
}

// List implements ports.Deletions.
func (d deletions) List(ctx context.Context, of id.AccountID, p ports.Page) ([]deletion.Scene, error) {
	return read(ctx, d.session, func(s *state) (list []deletion.Scene, _ error) {
		page, err := pagedByID(
			s.gone(func(r database.Record, _ deletion.Tombstone) bool { return r.AccountID == of }), p,
			func(t deletion.Tombstone) ports.Position {
				return ports.Position{At: t.DeletedAt, ID: string(t.DatabaseID)}
			}, -1)
		for _, t := range page {
			list = append(list, s.sceneOf(t))
		}
		return list, err
	})
}

// Count implements ports.Deletions.
func (d deletions) Count(ctx context.Context, of id.AccountID, previews bool) (account.Deleted, error) {
	return read(ctx, d.session, func(s *state) (sum account.Deleted, _ error) {
		counts := func(r database.Record) bool {
			_, is := s.previews.get(r.ID)
			return r.AccountID == of && r.Status.Gone() && is == previews
		}
		for _, r := range s.records(counts, byID) {
			sum.Databases++
			sum.Bytes += r.SizeBytes
			for _, b := range s.backups.byKey {
				if b.DatabaseID == r.ID {
					sum.Bytes += b.SizeBytes
				}
			}
		}
		return sum, nil
	})
}

// Due implements ports.Deletions.
func (d deletions) Due(ctx context.Context, now time.Time, limit int) ([]deletion.Tombstone, error) {
	return read(ctx, d.session, func(s *state) ([]deletion.Tombstone, error) {
		list := s.gone(func(r database.Record, t deletion.Tombstone) bool {
			return r.Status == database.Deleted && t.Due(now) && !s.operations.any(isOpenOn(r.ID)) && !s.record(r).Suspended()
		})
		slices.SortFunc(list, func(a, b deletion.Tombstone) int {
			return byTime(a.PurgeAfter, string(a.DatabaseID), b.PurgeAfter, string(b.DatabaseID))
		})
		return first(list, limit), nil
	})
}

// SetRecovery implements ports.Deletions.
func (d deletions) SetRecovery(ctx context.Context, db id.DatabaseID, op id.OperationID) error {
	return d.change(ctx, db, func(t *deletion.Tombstone) { t.RecoveryID = op })
}

// Recovered implements ports.Deletions.
func (d deletions) Recovered(ctx context.Context, db id.DatabaseID) error {
	return d.change(ctx, db, func(t *deletion.Tombstone) { t.PurgeAfter = deletion.Never })
}

func (d deletions) change(ctx context.Context, db id.DatabaseID, how func(*deletion.Tombstone)) error {
	return d.write(ctx, func(s *state) error {
		t, ok := s.tombstones.get(db)
		if !ok {
			return ports.ErrNoRow
		}
		how(&t)
		s.tombstones.put(s.txid, db, t)
		return nil
	})
}

// Skipped implements ports.Deletions.
func (d deletions) Skipped(ctx context.Context, db id.DatabaseID) (deletion.Skipped, error) {
	return read(ctx, d.session, func(s *state) (skipped deletion.Skipped, _ error) {
		for k := range s.tombstoneMembers.byKey {
			if _, still := s.memberships.get(k); k.database == db && !still {
				skipped.Members = append(skipped.Members, k.user)
			}
		}
		for b := range s.tombstoneKeys.byKey {
			_, bound := s.bindings.get(b)
			if key, _ := s.keys.get(b.key); b.database == db && (!bound || key.RevokedAt != nil) {
				skipped.Keys = append(skipped.Keys, b.key)
			}
		}
		slices.SortFunc(skipped.Members, cmp.Compare)
		slices.SortFunc(skipped.Keys, cmp.Compare)
		return skipped, nil
	})
}
