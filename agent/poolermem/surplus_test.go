package poolermem

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/agent/pooler"
)

const mb = 1 << 20

// held is a census of 1,200 MB where 1,000 MB are the bound, so that 450 MB are too much. Of the 600 MB that came last, three
// accounts with equal caps have a share of 100 MB each: busy has two databases.
func held(change func(*census)) census {
	c := census{
		bound: 1000 * mb, memory: 1200 * mb, growth: 600 * mb, packet: 64 * mb, uncapped: 60,
		holdings: []pooler.Holding{
			{Database: "busy", Account: "busy", ConnectionCap: 40}, {Database: "busier", Account: "busy", ConnectionCap: 20},
			{Database: "quiet", Account: "quiet", ConnectionCap: 60}, {Database: "alone"},
		},
		sent: map[string]traffic{},
	}
	change(&c)
	return c
}

// clients are several of an entry; their IDs begin with its name.
func clients(entry string, n int, like client) (all []client) {
	for i := range n {
		like.id, like.entry = fmt.Sprint(entry, i), entry
		all = append(all, like)
	}
	return all
}

func ids(entry string, n int) (all []string) {
	for _, one := range clients(entry, n, client{}) {
		all = append(all, one.id)
	}
	return all
}

func TestSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		census census
		want   []string // the IDs, in order
	}{
		"nobody": {held(func(c *census) {}), nil},
		"few clients with large statements": {held(func(c *census) {
			c.clients = clients("busy.transaction", 1, client{statements: 60})
			c.sent["busy.transaction"] = traffic{600 * mb, 60}
		}), ids("busy.transaction", 1)},
		"many clients with one statement each": {held(func(c *census) {
			c.clients = clients("busy.transaction", 600, client{statements: 1})
			c.sent["busy.transaction"] = traffic{600 * mb, 600}
		}), ids("busy.transaction", 600)},
		"both databases of an account count": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 1, client{statements: 20}),
				clients("busier.transaction", 1, client{statements: 20}))
			c.sent["busy.transaction"], c.sent["busier.transaction"] = traffic{200 * mb, 20}, traffic{200 * mb, 20}
		}), []string{"busy.transaction0", "busier.transaction0"}},
		"small statements": {held(func(c *census) {
			c.clients = clients("quiet.transaction", 10, client{statements: 100_000})
		}), ids("quiet.transaction", 10)},
		"a share is nobody's concern": {held(func(c *census) {
			c.clients = clients("busy.transaction", 1, client{statements: 20})
			c.sent["busy.transaction"] = traffic{90 * mb, 20}
		}), nil},
		"the only one who sends, also where memory has grown little since": {held(func(c *census) {
			c.holdings, c.growth = c.holdings[:2], 125*mb
			c.clients = clients("busy.transaction", 1, client{statements: 12})
			c.sent["busy.transaction"] = traffic{120 * mb, 12}
		}), ids("busy.transaction", 1)},
		"large statements hidden among small ones": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 1, client{statements: 60}), clients("quiet.transaction", 1,
				client{statements: 60}))
			c.sent["busy.transaction"], c.sent["quiet.transaction"] = traffic{600 * mb, 60_000}, traffic{60 * mb, 60}
		}), ids("busy.transaction", 1)},
		"strangers hold it": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 9, client{unfinished: 64*mb - 15, login: true}),
				clients("quiet.transaction", 1, client{statements: 20}))
			c.sent["quiet.transaction"] = traffic{15 * mb, 20}
		}), nil},
		"strangers who hold little hide nobody": {held(func(c *census) {
			c.clients = slices.Concat(clients("quiet.transaction", 5000, client{unfinished: 4985, login: true}),
				clients("", 20, client{unfinished: 1, login: true}), clients("busy.transaction", 1, client{statements: 60}))
			c.sent["busy.transaction"] = traffic{600 * mb, 60}
		}), ids("busy.transaction", 1)},
		"strangers who hold half do not hide the other half": {held(func(c *census) {
			c.clients = slices.Concat(clients("", 4, client{unfinished: 33 * mb, login: true}),
				clients("busy.transaction", 1, client{statements: 60}), clients("quiet.transaction", 1, client{statements: 60}))
			c.sent["busy.transaction"], c.sent["quiet.transaction"] = traffic{300 * mb, 60}, traffic{15 * mb, 60}
		}), ids("busy.transaction", 1)},
		"messages that are nearly complete": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 10, client{unfinished: 5000}),
				clients("quiet.transaction", 1, client{statements: 20}))
			c.sent["quiet.transaction"] = traffic{60 * mb, 20}
		}), ids("busy.transaction", 10)},
		"small messages that are not complete": {held(func(c *census) {
			c.clients = slices.Concat(clients("quiet.transaction", 20, client{unfinished: 5000}),
				clients("busy.transaction", 1, client{statements: 60}))
			c.sent["busy.transaction"] = traffic{600 * mb, 60}
		}), ids("busy.transaction", 1)},
		"closed statements are not held": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 1, client{statements: 60}),
				clients("quiet.transaction", 5, client{statements: 40}))
			c.sent["busy.transaction"], c.sent["quiet.transaction"] = traffic{600 * mb, 60}, traffic{60_000 * mb, 1_000_000}
		}), ids("busy.transaction", 1)},
		"statements from before are not what was sent": {held(func(c *census) {
			c.clients = clients("quiet.transaction", 5, client{statements: 200})
			c.sent["quiet.transaction"] = traffic{60_000 * mb, 0} // rows that are loaded
		}), nil},
		"statements of the server connection, in one transaction": {held(func(c *census) {
			c.clients = slices.Concat(clients("alone.transaction", 1, client{linked: true}),
				clients("alone.transaction", 1, client{linked: true, server: true, statements: 100}))
			c.sent["alone.transaction"] = traffic{600 * mb, 100}
		}), ids("alone.transaction", 1)},
		"messages that are not complete": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy.transaction", 10, client{unfinished: 64*mb - 15}),
				clients("quiet", 10, client{unfinished: 64*mb - 15, linked: true}), clients("busier.transaction", 5, client{}))
		}), ids("busy.transaction", 10)},
		"requests without an answer": {held(func(c *census) {
			c.unsent = 1100 * mb
			c.clients = slices.Concat(clients("busy", 2, client{linked: true}), clients("quiet", 5, client{linked: true}))
			c.sent["busy"], c.sent["quiet"] = traffic{200 * mb, 0}, traffic{1 * mb, 0}
		}), ids("busy", 2)},
		"sessions are let alone where few requests wait": {held(func(c *census) {
			c.clients = slices.Concat(clients("busy", 2, client{linked: true}), clients("busy.transaction", 1, client{statements: 60}))
			c.sent["busy.transaction"] = traffic{600 * mb, 60}
		}), ids("busy.transaction", 1)},
		"as many accounts as it takes": {held(func(c *census) {
			for _, d := range []string{"busy", "quiet", "alone"} {
				c.clients = append(c.clients, clients(d+".transaction", 1, client{statements: 10})...)
			}
			c.sent["busy.transaction"], c.sent["quiet.transaction"] = traffic{260 * mb, 10}, traffic{280 * mb, 10}
			c.sent["alone.transaction"] = traffic{300 * mb, 10}
		}), []string{"alone.transaction0", "quiet.transaction0"}},
		"who is nobody's": {held(func(c *census) {
			c.clients = clients("pgherd", 1, client{statements: 600, linked: true})
			c.sent["pgherd"] = traffic{600 * mb, 600}
		}), nil},
	} {
		var got []string
		for _, one := range c.census.surplus() {
			got = append(got, one.clients...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q are ended, want %q", name, got, c.want)
		}
	}
}

// A PgBouncer that was started again has counted from zero.
func TestSentSince(t *testing.T) {
	got := since(map[string]traffic{"a": {100, 10}, "b": {100, 10}}, map[string]traffic{"a": {130, 11}, "b": {5, 1}, "c": {7, 2}})
	for entry, want := range map[string]traffic{"a": {30, 1}, "b": {5, 1}, "c": {7, 2}} {
		if got[entry] != want {
			t.Errorf("%s: %+v, want %+v", entry, got[entry], want)
		}
	}
}

func TestReserved(t *testing.T) {
	for unfinished, want := range map[int64]int64{0: 0, 1: 1, 4985: 8192, 2 * mb: 2 * mb, 2*mb + 1: 4 * mb, 64*mb - 15: 64 * mb} {
		if got := (client{unfinished: unfinished}).reserved(); got != want {
			t.Errorf("%d: %d, want %d", unfinished, got, want)
		}
	}
}
