// Package usage watches how the databases of a server are used, unasked, and keeps what it saw until the control plane has stored
// it. It measures time by the monotonic clock alone: when an hour is, the control plane says.
package usage

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

// Sighting is what a look says of one database.
type Sighting struct {
	Active, Waiting int               // connections that are in use, and clients that wait for one
	Counted         [2]usage.Counters // by the pooler, at each of the two entries
}

// Look looks at all databases in service.
type Look func(context.Context) (map[id.DatabaseID]Sighting, error)

const (
	lookEvery = 5 * time.Second
	lookTime  = 5 * time.Second
	// mostBetween is how far two looks may lie apart for what lies between them to count as seen.
	mostBetween = 3 * lookEvery
	// leastStretch is how long a stretch is at least that is closed because somebody asks.
	leastStretch = 5 * time.Second
	// clockStep is by how much the wall clock and the monotonic one may differ from look to look. Beyond that the machine may have
	// slept, and nobody can say any more when it was that something was seen.
	clockStep = 30 * time.Second
	// keepFor and mostKept bound what is kept while nobody asks: 100,000 databases in a stretch take some 10 MB.
	keepFor  = 24 * time.Hour
	mostKept = 100_000
)

// Meter remembers what it saw of databases. What it remembers is lost with the process.
type Meter struct {
	look Look
	log  *zap.Logger

	mu       sync.Mutex
	instance string // tells the stretches of this process from those of another
	last     glance // zero: there is none that what comes could follow
	open     stretch
	kept     []stretch // the oldest first
	first    int       // the number of the first one
	held     int       // databases in kept
}

// glance is a look with when it was.
type glance struct {
	moment
	seen map[id.DatabaseID]Sighting
}

// moment is a time by both clocks.
type moment struct{ at, wall time.Time }

func now() moment {
	at := time.Now()
	return moment{at, at.Round(0)}
}

// stretch is a time in which looks followed each other.
type stretch struct {
	began, ended moment
	ms           int64 // how long it is
	seen         map[id.DatabaseID]usage.Activity
	list         []usage.Seen // of one that is closed, by ID
}

// New makes a meter.
func New(look Look, log *zap.Logger) *Meter {
	return &Meter{look: look, log: log, instance: rand.Text()}
}

// Run looks until ctx ends: every few seconds, and when a stretch ends by the wall clock, so that few lie across the end of an
// hour.
func (m *Meter) Run(ctx context.Context) {
	loop.Run(ctx, m.log, nil, "how databases are used cannot be seen", func(ctx context.Context) (time.Duration, error) {
		limited, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		seen, err := m.look(limited)
		at := now()
		if err == nil {
			m.note(glance{at, seen})
		}
		return min(lookEvery, at.wall.Truncate(usage.Every).Add(usage.Every).Sub(at.wall)), err
	})
}

// note adds what was seen since the last look.
func (m *Meter) note(g glance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last
	m.last = g
	passed := g.at.Sub(last.at)
	switch step := g.wall.Sub(last.wall) - passed; {
	case last.at.IsZero():
		m.open = stretch{began: g.moment, ended: g.moment}
		return
	case step.Abs() > clockStep:
		m.forget(len(m.kept))
		m.open = stretch{began: g.moment, ended: g.moment}
		return
	case passed > mostBetween:
		m.close()
		m.open = stretch{began: g.moment, ended: g.moment}
		return
	}
	m.open.add(g, last)
	if !m.open.began.wall.Truncate(usage.Every).Equal(g.wall.Truncate(usage.Every)) {
		m.close()
	}
}

// add adds what was seen between two looks. A database that the last one did not show counts from the next on.
func (s *stretch) add(g, last glance) {
	if s.ended = g.moment; s.seen == nil {
		s.seen = make(map[id.DatabaseID]usage.Activity, len(g.seen))
	}
	before := s.ms
	s.ms = s.ended.at.Sub(s.began.at).Milliseconds()
	ms := s.ms - before
	for db, d := range g.seen {
		was, known := last.seen[db]
		if !known {
			continue
		}
		a := s.seen[db]
		a.SeenMs += ms
		a.ActiveMs += int64(d.Active) * ms
		a.WaitingMs += int64(d.Waiting) * ms
		a.ActivePeak, a.WaitingPeak = max(a.ActivePeak, d.Active), max(a.WaitingPeak, d.Waiting)
		for i, counted := range d.Counted {
			since := counted.Since(was.Counted[i])
			a.Queries += since.Queries
			a.WaitUs += since.WaitUs
		}
		s.seen[db] = a
	}
}

// close keeps the open stretch, if there is anything in it, and begins another one where it ends.
func (m *Meter) close() {
	s := m.open
	m.open = stretch{began: s.ended, ended: s.ended}
	if s.ms == 0 {
		return
	}
	for db, a := range s.seen {
		s.list = append(s.list, usage.Seen{DatabaseID: db, Activity: a})
	}
	slices.SortFunc(s.list, func(a, b usage.Seen) int { return cmp.Compare(a.DatabaseID, b.DatabaseID) })
	s.seen = nil
	m.kept, m.held = append(m.kept, s), m.held+len(s.list)
	gone := 0
	for held := m.held; held > mostKept || s.ended.at.Sub(m.kept[gone].ended.at) > keepFor; gone++ {
		if held -= len(m.kept[gone].list); held == 0 { // the newest stays, however many it has
			break
		}
	}
	m.forget(gone)
}

// forget drops the first stretches.
func (m *Meter) forget(n int) {
	for _, s := range m.kept[:n] {
		m.held -= len(s.list)
	}
	m.kept, m.first = slices.Delete(m.kept, 0, n), m.first+n
}

// Use answers from what was seen. What came before the position is stored.
func (m *Meter) Use(_ context.Context, q command.AskUsage) (command.Used, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, offset := m.position(q.After)
	m.forget(number - m.first)
	if offset == 0 && m.open.ended.at.Sub(m.open.began.at) >= leastStretch {
		m.close()
	}
	return m.after(max(number, m.first), offset, time.Now()), nil
}

// after lists what follows a position.
func (m *Meter) after(number, offset int, at time.Time) command.Used {
	used, end := command.Used{Stretches: []usage.Stretch{}}, m.first+len(m.kept)
	for room := command.SeenAtOnce; number < end && room > 0; {
		s := m.kept[number-m.first]
		part := s.list[offset:min(len(s.list), offset+room)]
		used.Stretches = append(used.Stretches, usage.Stretch{
			Name: m.instance + "." + strconv.Itoa(number), EndedMs: at.Sub(s.ended.at).Milliseconds(),
			LastedMs: s.ms, Databases: part,
		})
		room -= len(part)
		if offset += len(part); offset == len(s.list) {
			number, offset = number+1, 0
		}
	}
	used.Next = strings.Join([]string{m.instance, strconv.Itoa(number), strconv.Itoa(offset)}, ".")
	used.More = number < end
	return used
}

// position is what this process has named: how many stretches came before it, and how many databases of the next one. What
// another has named, or nobody, is before all.
func (m *Meter) position(text string) (number, offset int) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != m.instance {
		return m.first, 0
	}
	number, badNumber := strconv.Atoi(parts[1])
	offset, badOffset := strconv.Atoi(parts[2])
	if badNumber != nil || badOffset != nil || number < m.first || number > m.first+len(m.kept) {
		return m.first, 0
	}
	if number == m.first+len(m.kept) || offset < 0 || offset > len(m.kept[number-m.first].list) {
		offset = 0
	}
	return number, offset
}
