package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

type previews struct{ session }

// preview adds what is known of a preview by its database.
func (s *state) preview(row preview.Preview) preview.Preview {
	r, _ := s.databases.get(row.DatabaseID)
	row.Schedule, row.RecoveryDeadline = r.Schedule, nil
	if tomb, ok := s.tombstones.get(r.ID); ok && r.Status.Gone() {
		row.RecoveryDeadline = &tomb.PurgeAfter
	}
	return row
}

// refTaken reports whether the ref of a preview has another one that is not deleted.
func (s *state) refTaken(row preview.Preview) bool {
	return row.Lease != preview.Deleted && s.previews.any(func(other preview.Preview) bool {
		return other.NamespaceID == row.NamespaceID && other.Ref == row.Ref && other.DatabaseID != row.DatabaseID &&
			other.Lease != preview.Deleted
	})
}

func errRefTaken() error { return fault.New(fault.PreviewConflict, "the ref has another preview") }

func (p previews) Add(ctx context.Context, row preview.Preview) error {
	return p.write(ctx, func(s *state) error {
		_, databaseKnown := s.databases.get(row.DatabaseID)
		_, namespaceKnown := s.namespaces.get(row.NamespaceID)
		again := func(other preview.Preview) bool {
			return other.NamespaceID == row.NamespaceID && other.Ref == row.Ref && other.Use == row.Use
		}
		switch {
		case !databaseKnown || !namespaceKnown:
			return p.refuse(ports.ErrNoRow)
		case s.refTaken(row) || s.previews.any(again):
			return p.refuse(errRefTaken())
		}
		s.previews.put(s.txid, row.DatabaseID, row)
		return nil
	})
}

func (p previews) OfRef(
	ctx context.Context, namespace id.NamespaceID, ref string,
) (live *preview.Preview, used int, err error) {
	s, err := p.reading(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range s.previews.byKey {
		if row.NamespaceID != namespace || row.Ref != ref {
			continue
		}
		used = max(used, row.Use)
		if row.Lease != preview.Deleted {
			row = s.preview(row)
			live = &row
		}
	}
	return live, used, nil
}

func (p previews) Reach(ctx context.Context, key id.KeyID, db id.DatabaseID) (preview.Preview, error) {
	return read(ctx, p.session, func(s *state) (preview.Preview, error) {
		k, known := s.keys.get(key)
		row, ok := s.previews.get(db)
		return found(s.preview(row), ok && known && k.Kind == account.CIKey && k.RevokedAt == nil && k.NamespaceID == row.NamespaceID)
	})
}

func (p previews) Lock(ctx context.Context, db id.DatabaseID) (preview.Preview, error) {
	return write(ctx, p.session, func(s *state) (preview.Preview, error) {
		row, ok := s.previews.get(db)
		return found(s.preview(row), ok)
	})
}

func (p previews) Save(ctx context.Context, row preview.Preview) error {
	return p.write(ctx, func(s *state) error {
		stored, ok := s.previews.get(row.DatabaseID)
		switch {
		case !ok:
			return ports.ErrNoRow
		case s.refTaken(row):
			return p.refuse(errRefTaken())
		}
		stored.Lease, stored.Generation, stored.ExpiresAt = row.Lease, row.Generation, row.ExpiresAt
		stored.EndAt, stored.Failures, stored.EndingSince = row.EndAt, row.Failures, row.EndingSince
		s.previews.put(s.txid, row.DatabaseID, stored)
		return nil
	})
}

func isOver(now time.Time) func(preview.Preview) bool {
	return func(row preview.Preview) bool { return row.Lease == preview.Active && !now.Before(row.ExpiresAt) }
}

func (p previews) Over(ctx context.Context, now time.Time) (bool, error) {
	return read(ctx, p.session, func(s *state) (bool, error) { return s.previews.any(isOver(now)), nil })
}

func (p previews) Lapse(ctx context.Context, now time.Time, limit int) (int, error) {
	return write(ctx, p.session, func(s *state) (int, error) {
		list := first(s.previews.having(isOver(now), func(a, b preview.Preview) int {
			return byTime(a.ExpiresAt, string(a.DatabaseID), b.ExpiresAt, string(b.DatabaseID))
		}), limit)
		for _, row := range list {
			at := row.ExpiresAt
			row.Lease, row.EndAt = preview.Expired, &at
			s.previews.put(s.txid, row.DatabaseID, row)
		}
		return len(list), nil
	})
}

func (p previews) Ending(ctx context.Context) ([]ports.EndingPreview, error) {
	return read(ctx, p.session, func(s *state) (list []ports.EndingPreview, err error) {
		for _, row := range s.previews.byKey {
			if row.EndingSince != nil {
				of, _ := s.databases.get(row.DatabaseID)
				list = append(list, ports.EndingPreview{
					DatabaseID: of.ID, ServerID: of.ServerID, AccountID: of.AccountID, Since: *row.EndingSince,
				})
			}
		}
		return list, nil
	})
}

func (p previews) Due(ctx context.Context, now, since time.Time) ([]ports.DuePreview, error) {
	return read(ctx, p.session, func(s *state) (list []ports.DuePreview, err error) {
		busy := map[id.ServerID]bool{}
		for _, row := range s.previews.byKey {
			if row.EndingSince != nil && row.EndingSince.After(since) {
				of, _ := s.databases.get(row.DatabaseID)
				busy[of.ServerID] = true
			}
		}
		for _, row := range s.previews.byKey {
			of, _ := s.databases.get(row.DatabaseID)
			held := busy[of.ServerID] || s.operations.any(isOpenOn(of.ID)) || s.record(of).Suspended()
			if row.Lease == preview.Expired && !row.EndAt.After(now) && !held {
				list = append(list, ports.DuePreview{Preview: s.preview(row), ServerID: of.ServerID, AccountID: of.AccountID})
			}
		}
		slices.SortFunc(list, func(a, b ports.DuePreview) int {
			return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(a.AccountID, b.AccountID),
				a.EndAt.Compare(*b.EndAt), cmp.Compare(a.DatabaseID, b.DatabaseID))
		})
		return slices.CompactFunc(list, func(a, b ports.DuePreview) bool {
			return a.ServerID == b.ServerID && a.AccountID == b.AccountID
		}), nil
	})
}

func (p previews) Living(ctx context.Context, of ports.PreviewFilter, page ports.Page) ([]ports.LivingPreview, error) {
	return read(ctx, p.session, func(s *state) (list []ports.LivingPreview, _ error) {
		for _, row := range s.previews.byKey {
			d, _ := s.databases.get(row.DatabaseID)
			if row.Lease == preview.Deleted || d.AccountID != of.AccountID || !wanted(of.NamespaceID, row.NamespaceID) {
				continue
			}
			living := ports.LivingPreview{Preview: s.preview(row), Name: d.Name, Status: d.Status}
			for _, o := range s.operations.having(isOpenOn(d.ID), nil) {
				living.OperationID, living.Kind = o.ID, o.Kind
			}
			list = append(list, living)
		}
		return pagedByID(list, page, func(l ports.LivingPreview) ports.Position {
			return ports.Position{At: l.ExpiresAt, ID: string(l.DatabaseID)}
		}, 1)
	})
}
