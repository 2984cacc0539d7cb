package commons

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Limits say from when on sessions are ended.
type Limits struct {
	// TransactionIDs is how many may be taken while a customer's transaction keeps them from being reused; 0 means 50,000,000.
	// PostgreSQL stops at some 2,100,000,000, and by its defaults freezes old rows from 200,000,000 on.
	TransactionIDs int64
	// QueueShare is the part of the queue of notifications that may be in use, less than 1/15; 0 means 0.05, which is 400 MB.
	QueueShare float64
	// CatalogBytes is by how much an account may make the shared catalogs larger at once; 0 means 64 MiB. What it has done is
	// forgotten within hours.
	CatalogBytes int64
}

// DefaultTransactionIDs is the default of Limits.TransactionIDs. With MostTransactionIDs a dump is ended before PostgreSQL stops.
const (
	DefaultTransactionIDs = 50_000_000
	MostTransactionIDs    = 100_000_000
)

func (l Limits) orDefault() Limits {
	return Limits{
		TransactionIDs: cmp.Or(l.TransactionIDs, DefaultTransactionIDs), QueueShare: cmp.Or(l.QueueShare, 0.05),
		CatalogBytes: cmp.Or(l.CatalogBytes, 64<<20),
	}
}

const (
	// An account burns transaction IDs that would take Limits.TransactionIDs within burnTime: by default, 5,000 a second. minMultis
	// is how many multixact IDs a second are too many.
	burnTime  = 10_000 * time.Second
	minMultis = 1_000
	// longOpen is how long a transaction is open that has itself to blame, and no burst of others'.
	longOpen = time.Hour
	// Where others burn IDs, or a burst did, a customer's transaction may keep so many times Limits.TransactionIDs; one in a copy,
	// too, and a dump in any case.
	burstFactor, dumpFactor = 4, 16
	// forgiven is how many bytes of shared catalogs an account is forgiven a second.
	forgiven = 8 << 10
	// minGrowth is how many bytes of shared catalogs within a look are a reason to see whose they are, for a time.
	minGrowth    = 256 << 10
	watchfulTime = time.Minute
	// passing is how long everybody has a transaction open.
	passing = time.Second
)

func (l Limits) burnRate() float64 { return float64(l.TransactionIDs) / burnTime.Seconds() }

// memory is what looks need to know of those before.
type memory struct {
	last  *state
	at    time.Time
	taken uint64
	// emptied is when the queue of notifications was last nearly empty, and notifiers are the accounts that were seen to notify
	// since.
	emptied   time.Time
	notifiers map[string]bool
	// debts are the bytes by which accounts have made the shared catalogs larger; watchful is until when it is seen who does.
	debts    map[string]float64
	watchful time.Time
	// takes is how many transaction IDs a second each account takes, of late.
	takes map[string]float64
}

// note compares a look with the one before. It reports whether it is to be seen by samples who takes what.
func (m *memory) note(s *state, now time.Time, l Limits) (sample bool) {
	if m.last != nil {
		s.elapsed = now.Sub(m.at)
		s.taken, s.takenMultis = s.next-m.last.next, s.nextMultixact-m.last.nextMultixact
		s.growth = max(0, s.catalogs-m.last.catalogs)
	}
	m.taken += uint64(s.taken)
	m.last, m.at = s, now
	if s.queue < l.QueueShare/10 || m.emptied.IsZero() {
		m.emptied, m.notifiers = now, make(map[string]bool)
	}
	s.filling = now.Sub(m.emptied)
	if s.growth >= minGrowth {
		m.watchful = now.Add(watchfulTime)
	}
	return s.pressing(l) && s.rate() >= l.burnRate() || s.pressingMultis() && s.multiRate() >= minMultis ||
		s.queue >= l.QueueShare/2 || now.Before(m.watchful)
}

// rate is how many transaction IDs are taken a second.
func (s *state) rate() float64 { return perSecond(s.taken, s.elapsed) }

func (s *state) multiRate() float64 { return perSecond(s.takenMultis, s.elapsed) }

func perSecond(n uint32, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) / in.Seconds()
}

// pressing reports whether transaction IDs that are taken now are a danger to all: somebody, whoever it is, keeps many from being
// reused, or autovacuum has to freeze.
func (s *state) pressing(l Limits) bool {
	held := max(s.prepared, s.slot)
	for _, x := range s.sessions {
		held = max(held, x.held)
	}
	return held > l.TransactionIDs || s.oldest > s.forced
}

func (s *state) pressingMultis() bool { return s.oldestMulti > s.forceMulti }

// verdict is that a session has to go.
type verdict struct {
	session
	resource Resource
	// takes: it takes, and may come back at once to take more. Otherwise it is in the way.
	takes bool
	why   string
}

// judge decides who has to go. A session goes once, for the first reason.
func (m *memory) judge(s *state, l Limits) (list []verdict) {
	for _, x := range s.suspects {
		if x.notifies > 0 && x.class != administrator {
			m.notifiers[x.account] = true
		}
	}
	charged := m.charge(s)
	seen := make(map[int]bool)
	for _, v := range slices.Concat(overIDs(s, m.burning(s, l), l), overQueue(s, m.notifiers, l), overCatalogs(s, charged, l)) {
		if !seen[v.pid] {
			seen[v.pid] = true
			list = append(list, v)
		}
	}
	return list
}

// shares is which part of what samples have shown was each account's. Administrators have a part too, as the account "".
func shares(suspects []suspect, shown func(suspect) int) map[string]float64 {
	total, all := 0, make(map[string]float64)
	for _, x := range suspects {
		total += shown(x)
	}
	for _, x := range suspects {
		if n := shown(x); n > 0 {
			account := x.account
			if x.class == administrator {
				account = ""
			}
			all[account] += float64(n) / float64(total)
		}
	}
	return all
}

func (x suspect) hasWritten() int { return x.writes }
func (x suspect) hasWaited() int  { return x.multixact }

// burning are the accounts that burn transaction IDs. A look counts for a tenth: the little that one shows can be chance.
func (m *memory) burning(s *state, l Limits) map[string]bool {
	burning := make(map[string]bool)
	if len(s.suspects) == 0 {
		return burning
	}
	now := make(map[string]float64)
	for account := range m.takes {
		now[account] = 0
	}
	for _, x := range s.suspects {
		if x.class != administrator {
			now[x.account] += float64(x.took) / s.sampled.Seconds()
		}
	}
	for account, rate := range now {
		now[account] = m.takes[account] + (rate-m.takes[account])/10
		burning[account] = now[account] >= l.burnRate()
	}
	maps.DeleteFunc(now, func(_ string, rate float64) bool { return rate < l.burnRate()/100 })
	m.takes = now
	return burning
}

// overIDs decides about transaction IDs. Whoever burns them goes first, even if nobody of that account keeps them; whoever keeps
// them goes where the account burns them too, where that has taken long by itself, and in the end in any case.
func overIDs(s *state, burning map[string]bool, l Limits) (list []verdict) {
	for _, x := range s.sessions {
		if x.class != administrator && x.held > l.mayKeep(x, burning) {
			list = append(list, verdict{x, TransactionIDs, false, "its transaction keeps transaction IDs from being reused"})
		}
	}
	if s.pressing(l) {
		for _, x := range s.suspects {
			if x.class != administrator && x.took > 0 && burning[x.account] {
				list = append(list, verdict{x.session, TransactionIDs, true, "it burns transaction IDs"})
			}
		}
	}
	return append(list, overMultixacts(s)...)
}

// mayKeep is how many transaction IDs a session may keep.
func (l Limits) mayKeep(x session, burning map[string]bool) int64 {
	others := false
	for account, burns := range burning {
		others = others || burns && account != x.account
	}
	switch {
	case x.class == dump:
		return dumpFactor * l.TransactionIDs
	case x.class == customer && (burning[x.account] || x.open >= longOpen && !others):
		return l.TransactionIDs
	}
	return burstFactor * l.TransactionIDs
}

// overMultixacts decides about multixact IDs. A transaction may keep them although it shows no ID that it keeps, so there the
// longest goes, one in each look.
func overMultixacts(s *state) (list []verdict) {
	if !s.pressingMultis() {
		return nil
	}
	for account, share := range shares(s.suspects, suspect.hasWaited) {
		for _, x := range s.suspects {
			if account == x.account && x.class != administrator && x.multixact > 0 && share*s.multiRate() >= minMultis {
				list = append(list, verdict{x.session, TransactionIDs, true, "it burns multixact IDs"})
			}
		}
	}
	if longest := s.longest(customer); s.oldestMulti > 2*s.forceMulti && longest.open >= longOpen {
		list = append(list, verdict{longest, TransactionIDs, false, "its transaction may keep multixact IDs from being reused"})
	}
	return list
}

// longest is the session of these classes whose transaction has been open for longest; none has one open for 0.
func (s *state) longest(classes ...class) (longest session) {
	for _, x := range s.sessions {
		if slices.Contains(classes, x.class) && x.open > longest.open {
			longest = x
		}
	}
	return longest
}

// The parts of the queue of notifications from which on others have to go too, in times of Limits.QueueShare: who notifies, then
// whoever may keep the queue from becoming shorter, one in each look, and then all of them.
const (
	notifiersGo = 5
	longestGoes = 10
	allGo       = 15
)

// overQueue decides about the queue of notifications. PostgreSQL 16 does not show who listens, and so not who has not read
// yet. It is somebody with an open transaction, first of all of the accounts that notify.
func overQueue(s *state, notifiers map[string]bool, l Limits) (list []verdict) {
	if s.queue < l.QueueShare {
		return nil
	}
	add := func(x session, takes bool, why string) { list = append(list, verdict{x, NotifyQueue, takes, why}) }
	for _, x := range s.sessions {
		mayKeep := (x.class == customer || x.class == copying) && x.open >= passing
		if mayKeep && (notifiers[x.account] || s.queue >= allGo*l.QueueShare) {
			add(x, false, "its transaction may keep notifications from being read")
		}
	}
	if longest := s.longest(customer, copying); s.queue >= longestGoes*l.QueueShare && longest.open > max(passing, s.filling) {
		add(longest, false, "its transaction has been open for longest, and may keep notifications from being read")
	}
	for _, x := range s.suspects {
		if x.class != administrator && x.notifies > 0 && s.queue >= notifiersGo*l.QueueShare {
			add(x.session, true, "it fills the queue of notifications")
		}
	}
	return list
}

// charge adds to the debts what the shared catalogs have grown by since the look before, and returns the debts of those
// accounts that have made them grow.
func (m *memory) charge(s *state) (charged map[string]float64) {
	if m.debts == nil {
		m.debts = make(map[string]float64)
	}
	for account, debt := range m.debts {
		if m.debts[account] = debt - forgiven*s.elapsed.Seconds(); m.debts[account] <= 0 {
			delete(m.debts, account)
		}
	}
	charged = make(map[string]float64)
	for account, share := range shares(s.suspects, suspect.hasWritten) {
		if account != "" && s.growth > 0 {
			m.debts[account] += share * float64(s.growth)
			charged[account] = m.debts[account]
		}
	}
	return charged
}

// overCatalogs decides about the shared catalogs: who has made them grow by too much, goes, and so do the account's transactions
// that keep the dead rows.
func overCatalogs(s *state, charged map[string]float64, l Limits) (list []verdict) {
	over := func(account string) bool { return charged[account] > float64(l.CatalogBytes) }
	for _, x := range s.suspects {
		if x.class != administrator && x.writes > 0 && over(x.account) {
			list = append(list, verdict{x.session, SharedCatalogs, true, "it makes the shared catalogs grow"})
		}
	}
	for _, x := range s.sessions {
		if x.class == customer && x.held > 0 && x.open >= passing && over(x.account) {
			list = append(list, verdict{x, SharedCatalogs, false, "its transaction keeps dead rows in the shared catalogs"})
		}
	}
	return list
}

// figures are for the metrics.
func (m *memory) figures(s *state, now time.Time, l Limits) *Figures {
	f := &Figures{
		At: now, Taken: m.taken, Bound: l.TransactionIDs, Multixacts: s.oldestMulti, Queue: s.queue, CatalogBytes: s.catalogs,
		Kept: map[string]int64{keptPrepared: s.prepared, keptSlot: s.slot, keptDatabase: s.oldest},
	}
	for c := administrator; c <= customer; c++ {
		f.Kept[c.String()] = 0
	}
	for _, x := range s.sessions {
		f.Kept[x.class.String()] = max(f.Kept[x.class.String()], x.held)
	}
	return f
}
