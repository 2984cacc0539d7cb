package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// aged is an entry of a kind, with what deletes it.
type aged struct {
	retention.Entry
	id     string
	remove func(s *state)
}

// agedKinds has those that package retention calls pruned.
var agedKinds = map[retention.Kind]func(s *state) []aged{ //nolint:exhaustive // the outbox forgets deliveries
	retention.Operations: func(s *state) (list []aged) {
		for _, o := range s.operations.byKey {
			list = append(list, aged{retention.OfOperation(o, s.needs(o)), string(o.ID), func(s *state) {
				s.uses.remove(s.txid, func(_ useKey, u operation.Use) bool { return u.OperationID == o.ID })
				s.operations.delete(s.txid, o.ID)
			}})
		}
		return list
	},
	retention.Audit: func(s *state) (list []aged) {
		for _, e := range s.audit.byKey {
			list = append(list, aged{retention.OfAudit(e), string(e.ID), func(s *state) { s.audit.delete(s.txid, e.ID) }})
		}
		return list
	},
	retention.Keys: func(s *state) (list []aged) {
		open := s.operations.having(func(o operation.Operation) bool { return !o.Status.Final() }, nil)
		for key, r := range s.requests.byKey {
			list = append(list, aged{retention.OfKey(r, open), r.ResourceID, func(s *state) { s.requests.delete(s.txid, key) }})
		}
		return list
	},
	retention.Changes: func(s *state) (list []aged) {
		for _, c := range s.roleChanges.byKey {
			list = append(list, aged{retention.OfChange(c), string(c.ID), func(s *state) { s.roleChanges.delete(s.txid, c.ID) }})
		}
		return list
	},
	retention.Usage: func(s *state) (list []aged) {
		for key, n := range s.usageSamples.byKey {
			list = append(list, aged{retention.OfSample(n), string(n.DatabaseID), func(s *state) { s.usageSamples.delete(s.txid, key) }})
		}
		return list
	},
}

func (s *state) needs(o operation.Operation) (n retention.Needs) {
	if r, ok := s.databases.get(o.DatabaseID); ok {
		n.Database = &r
	}
	if t, ok := s.tombstones.get(o.DatabaseID); ok {
		n.Tombstone = &t
	}
	n.Backups = s.backups.having(func(b backup.Backup) bool { return b.OperationID == o.ID }, nil)
	n.Uploads = s.uploads.having(func(u upload.Upload) bool { return u.OperationID == o.ID }, nil)
	return n
}

type ages struct{ session }

func (a ages) Forget(
	ctx context.Context, k retention.Kind, before time.Time, after *ports.Position, limit int,
) (f ports.Forgotten, err error) {
	of, known := agedKinds[k]
	if !known {
		return f, fmt.Errorf("no entries are of the kind %q", k)
	}
	return write(ctx, a.session, func(s *state) (f ports.Forgotten, _ error) {
		if k == retention.Usage {
			s.usageLines.remove(s.txid, func(_ usageKey, l usage.Line) bool { return retention.LineGone(l, before) })
		}
		list := slices.DeleteFunc(of(s), func(e aged) bool {
			return e.Over == nil || !e.Over.Before(before) || after != nil && byTime(*e.Over, e.id, after.At, after.ID) <= 0
		})
		slices.SortFunc(list, func(a, b aged) int { return byTime(*a.Over, a.id, *b.Over, b.id) })
		for _, e := range first(list, limit) {
			f.Looked, f.Last = f.Looked+1, &ports.Position{At: *e.Over, ID: e.id}
			if e.Gone(before) {
				f.Gone++
				e.remove(s)
			}
		}
		return f, nil
	})
}

// Clock implements ports.Retention: the store is on this machine.
func (a ages) Clock(ctx context.Context) (time.Time, error) {
	return read(ctx, a.session, func(*state) (time.Time, error) { return time.Now().UTC(), nil })
}

// Stored implements ports.Retention. What is in memory has no size.
func (a ages) Stored(ctx context.Context) ([]ports.StoredKind, error) {
	return read(ctx, a.session, func(s *state) (list []ports.StoredKind, _ error) {
		for _, k := range retention.Kinds() {
			stored := ports.StoredKind{Kind: k}
			if k == retention.Deliveries {
				stored.Rows = int64(len(s.deliveries.byKey))
				for _, d := range s.deliveries.byKey {
					stored.Oldest = older(stored.Oldest, d.FinishedAt)
				}
			} else {
				entries := agedKinds[k](s)
				stored.Rows = int64(len(entries))
				for _, e := range entries {
					stored.Oldest = older(stored.Oldest, e.Over)
				}
			}
			list = append(list, stored)
		}
		return list, nil
	})
}

// older is the earlier of two times, of which nil is none.
func older(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}
