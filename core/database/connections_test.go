package database

import (
	"testing"

	"pgregory.net/rapid"
)

// The numbers that the documentation names.
func TestWhatAServerCanSell(t *testing.T) {
	defaults := ServerConnections{Max: 300, SuperuserReserved: 3, Reserved: 10}
	if got := defaults.ForDatabases(); got != 300-17 {
		t.Errorf("%d connections are for databases", got)
	}
	for limit, want := range map[int]struct{ before, after int }{1: {6, 6}, 20: {25, 25}, 200: {205, 205}, 0: {65, 125}} {
		r := Record{ConnectionCap: limit}
		before := r.ReservedConnections()
		r.OverlayID = "o"
		if after := r.ReservedConnections(); before != want.before || after != want.after {
			t.Errorf("a database with a cap of %d takes %d, and after its opt-in %d, want %+v", limit, before, after, want)
		}
	}
}

// What MaxFor says is enough, and one less is not.
func TestTheConnectionsThatAServerNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) int { return rapid.IntRange(0, 1000).Draw(t, name) }
		c, sold := ServerConnections{SuperuserReserved: count("superuser"), Reserved: count("reserved")}, 1+count("sold")
		c.Max = c.MaxFor(sold)
		if c.ForDatabases() != sold {
			t.Errorf("%+v has %d for databases, want %d", c, c.ForDatabases(), sold)
		}
		if c.Max--; c.ForDatabases() >= sold {
			t.Errorf("%+v is enough for %d", c, sold)
		}
	})
}
