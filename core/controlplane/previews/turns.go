package previews

import (
	"cmp"
	"slices"
	"sync"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// turns remembers, in this process, when each account had its last turn on a server.
type turns struct {
	mu   sync.Mutex
	last map[turn]int64
	n    int64
}

// mostTurns bounds memory: beyond it, who waits begins anew, by how long.
const mostTurns = 10_000

type turn struct {
	server  id.ServerID
	account id.AccountID
}

// choose takes one preview of each server: of the account there that had its turn longest ago.
func (t *turns) choose(due []ports.DuePreview) []ports.DuePreview {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := func(d ports.DuePreview) turn { return turn{d.ServerID, d.AccountID} }
	slices.SortStableFunc(due, func(a, b ports.DuePreview) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(t.last[of(a)], t.last[of(b)]), a.EndAt.Compare(*b.EndAt))
	})
	chosen := slices.CompactFunc(slices.Clone(due), func(a, b ports.DuePreview) bool { return a.ServerID == b.ServerID })
	if len(t.last) > mostTurns {
		clear(t.last)
	}
	for _, d := range chosen {
		t.n++
		t.last[of(d)] = t.n
	}
	return chosen
}
