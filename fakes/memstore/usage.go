package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// usageKey is of a sample or a line: at is when its hour or month began.
type usageKey struct {
	database id.DatabaseID
	at       time.Time
}

type usages struct{ session }

func (u usages) Servers(ctx context.Context) ([]ports.UsageServer, error) {
	return read(ctx, u.session, func(s *state) (list []ports.UsageServer, _ error) {
		for _, row := range s.servers.having(every, byName) {
			if s.databases.any(func(r database.Record) bool { return r.ServerID == row.ID }) {
				list = append(list, ports.UsageServer{Server: row, Taken: s.takenOf(row.ID)})
			}
		}
		return list, nil
	})
}

func (s *state) takenOf(server id.ServerID) usage.Taken {
	taken, _ := s.usageTaken.get(server)
	taken.ServerID = server
	return taken
}

func (u usages) LockTaken(ctx context.Context, of id.ServerID) (usage.Taken, error) {
	return write(ctx, u.session, func(s *state) (usage.Taken, error) {
		if _, ok := s.servers.get(of); !ok {
			return usage.Taken{}, ports.ErrNoRow
		}
		taken := s.takenOf(of)
		s.usageTaken.put(s.txid, of, taken)
		return taken, nil
	})
}

func (u usages) SetTaken(ctx context.Context, t usage.Taken) error {
	return u.write(ctx, func(s *state) error {
		if _, ok := s.usageTaken.get(t.ServerID); !ok {
			return ports.ErrNoRow
		}
		s.usageTaken.put(s.txid, t.ServerID, t)
		return nil
	})
}

func (u usages) Holdings(ctx context.Context, of id.ServerID, list []id.DatabaseID) ([]usage.Holding, error) {
	return read(ctx, u.session, func(s *state) (found []usage.Holding, _ error) {
		for _, r := range s.databases.having(func(r database.Record) bool {
			return r.ServerID == of && slices.Contains(list, r.ID)
		}, byID) {
			found = append(found, usage.Holding{
				DatabaseID: r.ID, AccountID: r.AccountID, Name: r.Name, Bytes: r.SizeBytes, BackupBytes: s.backupBytes(r.ID),
				ConnectionCap: r.ConnectionCap,
			})
		}
		return found, nil
	})
}

func (u usages) Add(ctx context.Context, samples []usage.Sample, lines []usage.Line) error {
	return u.write(ctx, func(s *state) error {
		for _, n := range samples {
			key := usageKey{n.DatabaseID, n.Hour}
			if t, there := s.usageSamples.get(key); there {
				n = t.Plus(n)
			}
			s.usageSamples.put(s.txid, key, n)
		}
		for _, n := range lines {
			key := usageKey{n.DatabaseID, n.Month}
			t, _ := s.usageLines.get(key)
			n.Sums = t.Plus(n.Sums)
			s.usageLines.put(s.txid, key, n)
		}
		return nil
	})
}

func (u usages) Samples(ctx context.Context, list []id.DatabaseID, in usage.Period) ([]usage.Sample, error) {
	return read(ctx, u.session, func(s *state) ([]usage.Sample, error) {
		return s.usageSamples.having(func(n usage.Sample) bool {
			return slices.Contains(list, n.DatabaseID) && !n.Hour.Before(in.From.Truncate(time.Hour)) && n.Hour.Before(in.To)
		}, func(a, b usage.Sample) int {
			return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.DatabaseID, b.DatabaseID))
		}), nil
	})
}

// bill are the lines that a filter chooses.
func (s *state) bill(of ports.UsageFilter) []usage.Line {
	return s.usageLines.having(func(l usage.Line) bool {
		_, bound := s.bindings.get(binding{of.KeyID, l.DatabaseID})
		return l.Month.Equal(of.Month) && wanted(of.AccountID, l.AccountID) && (of.KeyID == "" || bound)
	}, func(a, b usage.Line) int { return cmp.Compare(a.DatabaseID, b.DatabaseID) })
}

func lineAt(l usage.Line) ports.Position {
	return ports.Position{At: l.Month, ID: string(l.DatabaseID)}
}

func (u usages) Lines(ctx context.Context, of ports.UsageFilter, p ports.Page) ([]usage.Line, error) {
	return read(ctx, u.session, func(s *state) ([]usage.Line, error) { return pagedByID(s.bill(of), p, lineAt, 1) })
}

func (u usages) Sum(ctx context.Context, of ports.UsageFilter) (usage.Sums, error) {
	return read(ctx, u.session, func(s *state) (sums usage.Sums, _ error) {
		for _, l := range s.bill(of) {
			sums = sums.Plus(l.Sums)
		}
		return sums, nil
	})
}

func (d directory) Usage(ctx context.Context, of ports.UsageFilter, p ports.Page) ([]ports.UsageEntry, error) {
	return read(ctx, d.session, func(s *state) ([]ports.UsageEntry, error) {
		page, err := pagedByID(s.bill(of), p, lineAt, 1)
		list := make([]ports.UsageEntry, len(page))
		for i, l := range page {
			list[i] = ports.UsageEntry{Line: l, Email: s.ownerOf(l.AccountID).Email}
		}
		return list, err
	})
}
