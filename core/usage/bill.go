package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Holding is what the metadata say of a database when its samples are stored.
type Holding struct {
	DatabaseID    id.DatabaseID `db:"database_id"`
	AccountID     id.AccountID  `db:"account_id"`
	Name          string        `db:"name"`
	Bytes         int64         `db:"bytes"`
	BackupBytes   int64         `db:"backup_bytes"`
	ConnectionCap int           `db:"connection_cap"`
}

// Sums are what is billed by. A stopped database has its hours, too; a deleted one has none.
type Sums struct {
	SeenMs          int64 `db:"seen_ms"`           // for how long there was a database
	ActiveMs        int64 `db:"active_ms"`         // for how long connections were in use
	ByteHours       int64 `db:"byte_hours"`        // of databases
	BackupByteHours int64 `db:"backup_byte_hours"` // of their backups
}

// Plus adds others.
func (s Sums) Plus(o Sums) Sums {
	return Sums{s.SeenMs + o.SeenMs, s.ActiveMs + o.ActiveMs, s.ByteHours + o.ByteHours, s.BackupByteHours + o.BackupByteHours}
}

func (s Sums) minus(o Sums) Sums {
	return Sums{s.SeenMs - o.SeenMs, s.ActiveMs - o.ActiveMs, s.ByteHours - o.ByteHours, s.BackupByteHours - o.BackupByteHours}
}

// DatabaseHours is SeenMs in hours.
func (s Sums) DatabaseHours() float64 { return ratio(s.SeenMs, hourMs) }

// ConnectionHours is ActiveMs in hours.
func (s Sums) ConnectionHours() float64 { return ratio(s.ActiveMs, hourMs) }

// Line is what one database comes to in a month. It stays when the database is gone.
type Line struct {
	Month      time.Time     `db:"month"` // when it began
	DatabaseID id.DatabaseID `db:"database_id"`
	AccountID  id.AccountID  `db:"account_id"`
	Name       string        `db:"name"` // the last one
	Sums
}

// Hold completes samples with what the metadata say of their databases, and makes the lines that come of them. A database that is
// unknown has neither. Stored is what is stored of these hours: a line has what they come to more than that, so that the hours of
// a month add up to it, to the byte.
func Hold(samples, stored []Sample, holdings []Holding) (held []Sample, lines []Line) {
	earlier := make(map[sampleKey]Sample, len(stored))
	for _, s := range stored {
		earlier[sampleKey{s.DatabaseID, s.Hour.UTC()}] = s
	}
	known := make(map[id.DatabaseID]Holding, len(holdings))
	for _, h := range holdings {
		known[h.DatabaseID] = h
	}
	billed := map[sampleKey]Line{}
	for _, s := range samples {
		h, there := known[s.DatabaseID]
		if !there {
			continue
		}
		s.Bytes, s.BackupBytes, s.ConnectionCap = h.Bytes, h.BackupBytes, h.ConnectionCap
		held = append(held, s)
		more := s.Sums()
		if e, there := earlier[sampleKey{s.DatabaseID, s.Hour.UTC()}]; there {
			more = e.Plus(s).Sums().minus(e.Sums())
		}
		key := sampleKey{s.DatabaseID, MonthOf(s.Hour)}
		billed[key] = Line{
			Month: key.hour, DatabaseID: h.DatabaseID, AccountID: h.AccountID, Name: h.Name, Sums: billed[key].Plus(more),
		}
	}
	return held, slices.SortedFunc(maps.Values(billed), func(a, b Line) int {
		return cmp.Or(a.Month.Compare(b.Month), cmp.Compare(a.DatabaseID, b.DatabaseID))
	})
}

// MonthOf is when the month of a time begins, in UTC.
func MonthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// monthLayout is how a month is written.
const monthLayout = "2006-01"

// ParseMonth reads a month as 2026-11; empty is that of now. VALIDATION_ERROR on "month".
func ParseMonth(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return MonthOf(now), nil
	}
	month, err := time.Parse(monthLayout, text)
	if err != nil || month.Year() == 0 {
		return time.Time{}, fault.Invalid("month", "must be a month as 2026-11")
	}
	return month, nil
}

// FormatMonth writes a month as ParseMonth reads it.
func FormatMonth(month time.Time) string { return month.UTC().Format(monthLayout) }
