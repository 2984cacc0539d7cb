// Package sizes measures the databases in which something is written, so that the control plane learns within seconds how large
// they are.
//
// PostgreSQL has no counter of a database's size: measuring looks at each of its files, of which a customer can make as many as
// they like. So a database is measured only where something says that it may have grown, the more rarely the longer that takes,
// and no account has more than a small share of that time. Those that take long are measured beside the others: one of each at a
// time.
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
	// Measure measures one, for at most limit. It also says how long that took. Any wait for its turn counts for neither.
	Measure func(ctx context.Context, db id.DatabaseID, limit time.Duration) (bytes int64, took time.Duration, err error)
)

// Meter measures databases and remembers their sizes. What it knows is lost with the process: the next one measures all.
type Meter struct {
	look    Look
	measure Measure
	log     *zap.Logger
	seldom  loop.Seldom

	mu       sync.Mutex
	instance string // tells the numbers of this process from those of another
	number   int64  // of the last change
	known    map[id.DatabaseID]*database
	resting  map[turn]time.Time // when accounts will have waited for what measuring their databases took
	heavyRun bool               // a heavy database is being measured
	heavies  sync.WaitGroup
}

// turn is whose turn it is: an account's, for its heavy databases or for the others.
type turn struct {
	account string
	heavy   bool
}

// database is what the meter knows of one.
type database struct {
	written int64     // as counted before it was last measured
	began   time.Time // when it was last measured
	took    time.Duration
	limit   time.Duration // how long it may take next time; above LightTime: it is a heavy one
	late    bool          // it took longer than it may
	failed  bool          // it could not be measured; not while LightTime alone did not suffice
	bytes   int64
	number  int64 // of the change that bytes came with; 0: no size is known
	// since is when this one took the place of another, whose sizes it does not inherit.
	since time.Time
}

// New makes a meter.
func New(look Look, measure Measure, log *zap.Logger) *Meter {
	return &Meter{
		look: look, measure: measure, log: log, instance: rand.Text(), known: map[id.DatabaseID]*database{},
		resting: map[turn]time.Time{},
	}
}

// LightTime is how long one of the others may take, and any that is not known yet.
const LightTime = 2 * time.Second

const (
	// passTime is how long databases are measured before it is looked again which are most urgent.
	passTime = 2 * time.Second
	// leastPause and pauseFactor bound how much of the time goes into looking and measuring: a third, while that is little.
	// mostPause holds the promise to those that are measured quickly.
	leastPause  = 2 * time.Second
	pauseFactor = 2
	mostPause   = 5 * time.Second
	lookTime    = 10 * time.Second
	// heavyAfter is how long a database may take to be measured among the others the next time too.
	heavyAfter = time.Second
	// leastHeavy and mostHeavy bound the time for a heavy one, which has twice what it took, or did not suffice, last time.
	leastHeavy = 10 * time.Second
	mostHeavy  = 5 * time.Minute
)

// Run measures until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	defer m.heavies.Wait()
	loop.Run(ctx, m.log, nil, "the sizes of databases cannot be measured", func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := m.pass(ctx)
		return min(max(leastPause, pauseFactor*time.Since(began)), mostPause), err
	})
}

// pass looks once, and measures what is due for at most passTime and one more database, which is not a heavy one.
func (m *Meter) pass(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	seen, err := m.look(limited)
	cancel()
	if err != nil {
		return err
	}
	for i, s := range seen { // those whose account is not known share nothing
		seen[i].Account = cmp.Or(s.Account, string(s.ID))
	}
	light, heavy := m.due(seen, time.Now())
	m.beginHeavy(ctx, heavy)
	until := time.Now().Add(passTime)
	for _, s := range light {
		if ctx.Err() != nil || time.Now().After(until) {
			return ctx.Err()
		}
		if m.mayMeasure(turn{account: s.Account}, time.Now()) {
			m.one(ctx, s, LightTime)
		}
	}
	return nil
}

// beginHeavy begins to measure the first of these whose account's turn it is, unless another is being measured.
func (m *Meter) beginHeavy(ctx context.Context, due []Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range due {
		d := m.known[s.ID]
		if m.heavyRun || d == nil || !m.hasTurn(turn{s.Account, true}, time.Now()) {
			continue
		}
		m.heavyRun = true
		limit := d.limit
		m.heavies.Go(func() {
			m.one(ctx, s, limit)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.heavyRun = false
		})
	}
}

// one measures a database, for so long.
func (m *Meter) one(ctx context.Context, s Sighting, limit time.Duration) {
	r := result{began: time.Now(), limit: limit}
	var err error
	r.bytes, r.took, err = m.measure(ctx, s.ID, limit)
	if ctx.Err() != nil {
		return
	}
	r.measured, r.late = err == nil, err != nil && r.took >= limit
	if err != nil && (!r.late || limit > LightTime) {
		m.seldom.Warn(m.log, string(s.ID), "a database could not be measured", zap.String("databaseId", string(s.ID)), zap.Error(err))
	}
	m.note(s, r)
}

// Forget drops what is known of a database whose place another one has now, and what is being found out about it.
func (m *Meter) Forget(db id.DatabaseID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[db] = &database{limit: LightTime, since: time.Now()}
}

// result is what measuring a database came to.
type result struct {
	began          time.Time
	limit, took    time.Duration
	bytes          int64
	measured, late bool // late: it took longer than the limit
}

// note remembers a result. What was not measured stays due, after a pause.
func (m *Meter) note(s Sighting, r result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.known[s.ID]
	if d == nil {
		d = &database{limit: LightTime}
		m.known[s.ID] = d
	}
	if !r.began.After(d.since) {
		return
	}
	d.began, d.took, d.late = r.began, r.took, r.late
	switch heavy := r.limit > LightTime; {
	case r.late:
		d.limit, d.failed = min(max(leastHeavy, 2*r.limit), mostHeavy), heavy
	case !r.measured:
		d.failed = true
	case r.took > heavyAfter:
		d.limit, d.failed = min(max(leastHeavy, 2*r.took), mostHeavy), false
	default:
		d.limit, d.failed = LightTime, false
	}
	if r.measured {
		d.written = s.Written
	}
	if r.measured && (d.number == 0 || d.bytes != r.bytes) {
		m.number++
		d.bytes, d.number = r.bytes, m.number
	}
	whose := turn{s.Account, r.limit > LightTime}
	m.resting[whose] = later(r.began, m.resting[whose]).Add(restFactor * r.took)
}

// Unmeasured is how many databases could not be measured when that was last tried: they are held to no quota.
func (m *Meter) Unmeasured() (databases int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.known {
		if d.failed {
			databases++
		}
	}
	return databases
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Size is the last size of a database, where one is known.
func (m *Meter) Size(db id.DatabaseID) (bytes int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.known[db]
	if d == nil || d.number == 0 {
		return 0, false
	}
	return d.bytes, true
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
