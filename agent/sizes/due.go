package sizes

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// How long a database is not measured again: at least leastBetween, and so many times what measuring it took. Where it is only
// possible that something was written, that is longer, because the counters will say within 10 s.
const (
	leastBetween   = 5 * time.Second
	certainFactor  = 50
	possibleFactor = 500
	// An account waits restFactor times as long as its databases took, so that it has a tenth of the time at most, and not
	// before that comes to restBurst.
	restFactor = 10
	restBurst  = 2 * time.Second
	// slack is more than clocks are read apart.
	slack = time.Second
)

// candidate is a database that is to be measured.
type candidate struct {
	Sighting
	class int       // 0: something was written for certain; 1: it is possible
	since time.Time // when it became due; zero where it was never measured
	rank  int       // among those of its account
}

// due lists the databases that are to be measured now: those first in which something was written for certain, by turns of their
// accounts, and of an account the ones that have waited longest. The heavy ones are apart. It forgets those that are gone.
func (m *Meter) due(seen []Sighting, now time.Time) (light, heavy []Sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetGone(seen, now)
	var list []candidate
	for _, s := range seen {
		if c := m.judge(s, now); !c.since.After(now) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.class, b.class), a.since.Compare(b.since)) })
	ranks := map[string]int{}
	for i, c := range list {
		list[i].rank = ranks[c.Account]
		ranks[c.Account]++
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.rank, b.rank), a.since.Compare(b.since))
	})
	for _, c := range list {
		if d := m.known[c.ID]; d != nil && d.limit > LightTime {
			heavy = append(heavy, c.Sighting)
		} else {
			light = append(light, c.Sighting)
		}
	}
	return light, heavy
}

// never is when a database is due of which nothing says that it has changed.
const never = 365 * 24 * time.Hour

func (m *Meter) judge(s Sighting, now time.Time) candidate {
	c, d := candidate{Sighting: s, class: 1}, m.known[s.ID]
	if s.Writing || d != nil && s.Written != d.written {
		c.class = 0
	}
	if d == nil {
		return c
	}
	wait := never
	switch active := s.Idle >= 0 && now.Add(-s.Idle).After(d.began.Add(-slack)); {
	case d.late: // it has more time now
		wait = max(leastBetween, restFactor*d.took)
	case c.class == 0:
		wait = max(leastBetween, certainFactor*d.took)
	case active, d.number == 0:
		wait = max(leastBetween, possibleFactor*d.took)
	}
	c.since = d.began.Add(wait)
	return c
}

func (m *Meter) forgetGone(seen []Sighting, now time.Time) {
	if len(seen) < len(m.known) {
		there := make(map[id.DatabaseID]bool, len(seen))
		for _, s := range seen {
			there[s.ID] = true
		}
		for db := range m.known {
			if !there[db] {
				delete(m.known, db)
			}
		}
	}
	for t, until := range m.resting {
		if until.Before(now) {
			delete(m.resting, t)
		}
	}
}

// mayMeasure reports whether it is an account's turn again.
func (m *Meter) mayMeasure(t turn, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hasTurn(t, now)
}

func (m *Meter) hasTurn(t turn, now time.Time) bool { return m.resting[t].Sub(now) < restBurst }
