package previews

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// shares remembers, in this process, for how long the deletions of each account have held up the others on a server. It counts
// those that other processes have begun, too. Of an account for which nothing is left to do it remembers nothing.
type shares struct {
	mu      sync.Mutex
	used    map[share]time.Duration
	counted time.Time // until when
}

type share struct {
	server  id.ServerID
	account id.AccountID
}

// choose takes one preview of each server on which one is due: of the account that has held up the others for the shortest time.
// An account whose previews take long is left with as much time as each of the others, and not with as many previews.
func (s *shares) choose(now time.Time, ending []ports.EndingPreview, due []ports.DuePreview) []ports.DuePreview {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(now, ending)
	s.admit(now, ending, due)
	of := func(d ports.DuePreview) share { return share{d.ServerID, d.AccountID} }
	slices.SortStableFunc(due, func(a, b ports.DuePreview) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(s.used[of(a)], s.used[of(b)]), a.EndAt.Compare(*b.EndAt))
	})
	chosen := slices.CompactFunc(slices.Clone(due), func(a, b ports.DuePreview) bool { return a.ServerID == b.ServerID })
	for _, d := range chosen {
		s.used[of(d)] += leasesEvery // until the next round sees it, or finds it over
	}
	return chosen
}

// count adds the time since the last round.
func (s *shares) count(now time.Time, ending []ports.EndingPreview) {
	for _, e := range ending {
		from, until := e.Since, e.Since.Add(preview.LongEnd)
		if from.Before(s.counted) {
			from = s.counted
		}
		if until.After(now) {
			until = now
		}
		s.used[share{e.ServerID, e.AccountID}] += max(0, until.Sub(from))
	}
	s.counted = now
}

// admit has accounts that were not waiting before begin with no less time than the others: nobody saves any. What waits for a
// server that is held up is not due, so of that nothing is forgotten.
func (s *shares) admit(now time.Time, ending []ports.EndingPreview, due []ports.DuePreview) {
	held, waiting, least := map[id.ServerID]bool{}, map[share]bool{}, map[id.ServerID]time.Duration{}
	for _, e := range ending {
		held[e.ServerID] = held[e.ServerID] || holdsUp(e, now)
	}
	for _, d := range due {
		of := share{d.ServerID, d.AccountID}
		waiting[of] = true
		if used, known := s.used[of]; known {
			if before, found := least[d.ServerID]; !found || used < before {
				least[d.ServerID] = used
			}
		}
	}
	maps.DeleteFunc(s.used, func(of share, _ time.Duration) bool { return !waiting[of] && !held[of.server] })
	for of := range waiting {
		s.used[of] = max(s.used[of], least[of.server])
	}
}
