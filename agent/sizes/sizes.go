// Package sizes measures the databases in which something is written, so that the control plane learns within seconds how large
// they are.
//
// PostgreSQL has no counter of a database's size: measuring looks at each of its files, of which a customer can make as many as
// they like. So a database is measured only where something says that it may have grown, the more rarely the longer that takes,
// one at a time, and no account has more than a small share of that time.
package sizes

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
)

// Sighting is what a cheap look says of one database.
type Sighting struct {
	ID      id.DatabaseID
	Account string
	// Written counts the rows that transactions have inserted, updated and deleted, those of the catalogs too.
	Written int64
	// Writing says that a transaction is under way that has written something: Written does not count that yet.
	Writing bool
	// Idle is how long ago a session has last begun or ended something; negative: there is none. A session may count what it has
	// written up to 10 s late.
	Idle time.Duration
}

type (
	// Look looks at all databases.
	Look func(context.Context) ([]Sighting, error)
	// Measure measures one. It also says how long that took, without any wait for its turn.
	Measure func(context.Context, id.DatabaseID) (bytes int64, took time.Duration, err error)
)

// Meter measures databases and remembers their sizes. What it knows is lost with the process: the next one measures all.
type Meter struct {
	look    Look
	measure Measure
	log     *zap.Logger

	mu       sync.Mutex
	instance string // tells the numbers of this process from those of another
	number   int64  // of the last change
	known    map[id.DatabaseID]*database
	resting  map[string]time.Time // when accounts will have waited for what measuring their databases took
}

// database is what the meter knows of one.
type database struct {
	written int64     // as counted before it was last measured
	began   time.Time // when it was last measured
	took    time.Duration
	bytes   int64
	number  int64 // of the change that bytes came with; 0: no size is known
}

// New makes a meter.
func New(look Look, measure Measure, log *zap.Logger) *Meter {
	return &Meter{
		look: look, measure: measure, log: log, instance: rand.Text(), known: map[id.DatabaseID]*database{},
		resting: map[string]time.Time{},
	}
}

const (
	// passTime is how long databases are measured before it is looked again which are most urgent.
	passTime = 2 * time.Second
	// leastPause and pauseFactor bound how much of the time goes into looking and measuring: a third.
	leastPause  = 2 * time.Second
	pauseFactor = 2
	// lookTime and measureTime bound one statement each. A database that cannot be measured in time counts as one that took that
	// long.
	lookTime    = 10 * time.Second
	measureTime = 10 * time.Second
)

// Run measures until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	loop.Run(ctx, m.log, nil, "the sizes of databases cannot be measured", func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := m.pass(ctx)
		return max(leastPause, pauseFactor*time.Since(began)), err
	})
}

// pass looks once, and measures what is due for at most passTime and one more database.
func (m *Meter) pass(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	seen, err := m.look(limited)
	cancel()
	if err != nil {
		return err
	}
	until := time.Now().Add(passTime)
	for _, s := range m.due(seen, time.Now()) {
		if ctx.Err() != nil || time.Now().After(until) {
			return ctx.Err()
		}
		if m.mayMeasure(s.Account, time.Now()) {
			m.one(ctx, s)
		}
	}
	return nil
}

// one measures a database.
func (m *Meter) one(ctx context.Context, s Sighting) {
	limited, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	began := time.Now()
	bytes, took, err := m.measure(limited, s.ID)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		m.log.Warn("a database could not be measured", zap.String("databaseId", string(s.ID)), zap.Error(err))
	}
	m.note(s, began, took, bytes, err == nil)
}

// note remembers what measuring a database came to. What was not measured stays due, after a pause.
func (m *Meter) note(s Sighting, began time.Time, took time.Duration, bytes int64, measured bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.known[s.ID]
	if d == nil {
		d = &database{}
		m.known[s.ID] = d
	}
	d.began, d.took = began, took
	if measured {
		d.written = s.Written
	}
	if measured && (d.number == 0 || d.bytes != bytes) {
		m.number++
		d.bytes, d.number = bytes, m.number
	}
	m.resting[s.Account] = later(began, m.resting[s.Account]).Add(restFactor * took)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Use answers from what was measured.
func (m *Meter) Use(_ context.Context, q command.StorageUse) (command.StorageUsed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := m.position(q.After)
	used := command.StorageUsed{Databases: []command.DatabaseUse{}}
	if after < m.number {
		used = m.changedSince(after)
	}
	if !used.More {
		used.Next = m.instance + "." + strconv.FormatInt(m.number, 10)
	}
	return used, nil
}

// position is the number that this process has named; 0 for what another has, or nobody.
func (m *Meter) position(text string) int64 {
	number, ours := strings.CutPrefix(text, m.instance+".")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ours || err != nil {
		return 0
	}
	return n
}

func (m *Meter) changedSince(after int64) command.StorageUsed {
	var changed []id.DatabaseID
	for db, d := range m.known {
		if d.number > after {
			changed = append(changed, db)
		}
	}
	slices.SortFunc(changed, func(a, b id.DatabaseID) int { return cmp.Compare(m.known[a].number, m.known[b].number) })
	used := command.StorageUsed{More: len(changed) > command.UsesAtOnce, Databases: []command.DatabaseUse{}}
	for _, db := range changed[:min(len(changed), command.UsesAtOnce)] {
		used.Databases = append(used.Databases, command.DatabaseUse{DatabaseID: db, Bytes: m.known[db].bytes})
		used.Next = m.instance + "." + strconv.FormatInt(m.known[db].number, 10)
	}
	return used
}
