package move

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// However moves end, a drain comes to an end, never moves more than it may at a time, and leaves only what it has given up.
func TestADrainEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Drain{AtOnce: rapid.IntRange(1, 5).Draw(t, "at once")}
		left := map[id.DatabaseID]Remaining{}
		for i := range rapid.IntRange(0, 12).Draw(t, "databases") {
			db := id.DatabaseID(fmt.Sprint(i))
			left[db] = Remaining{Record: database.Record{ID: db, SizeBytes: rapid.Int64Range(0, 9).Draw(t, "bytes")}}
		}
		now := noon
		for range 500 {
			var list []Remaining
			moving := 0
			for _, s := range left {
				list = append(list, s)
				if s.Moving {
					moving++
				}
			}
			order, state := d.Next(list, now)
			if moving+len(order) > max(d.AtOnce, moving) {
				t.Fatalf("%d move, and %d more, of %d", moving, len(order), d.AtOnce)
			}
			switch state {
			case Drained, Stuck:
				for _, s := range left {
					if !s.Item.GivenUp() {
						t.Fatalf("it leaves %+v", s)
					}
				}
				if (state == Drained) != (len(left) == 0) || len(order) > 0 {
					t.Fatalf("%s with %d left", state, len(left))
				}
				return
			}
			for _, db := range order {
				s := left[db]
				s.Moving = rapid.Bool().Draw(t, "ordered")
				s.Item = s.Item.Tried("", "", now)
				left[db] = s
			}
			for db, s := range left {
				if s.Moving && rapid.Bool().Draw(t, "ends") {
					if s.Moving = false; rapid.Bool().Draw(t, "succeeds") {
						delete(left, db)
						continue
					}
					left[db] = s
				}
			}
			now = now.Add(triesApart)
		}
		t.Fatal("it never ends")
	})
}

func TestTheRoomOfADrain(t *testing.T) {
	on := func(name string, capacity, connections int) server.Room {
		return server.Room{Server: server.Server{
			ID: id.ServerID(name), Name: name, Capacity: capacity, Connections: connections, Enabled: true, PostgresVersion: 16,
		}}
	}
	db := func(name string, connections int) database.Record {
		return database.Record{ID: id.DatabaseID(name), Name: name, ConnectionCap: connections, PostgresVersion: 16}
	}
	newer := on("new", 9, 0)
	newer.PostgresVersion = 18
	taken := map[id.ServerID]map[string]bool{"one": {"b": true}}
	all := []database.Record{db("a", 10), db("b", 20), db("c", 30)}
	for name, c := range map[string]struct {
		drain Drain
		rooms []server.Room
		names map[id.ServerID]map[string]bool
		lack  []string // that fit nowhere
	}{
		"room for all":           {Drain{}, []server.Room{on("one", 9, 0), on("two", 9, 0)}, nil, nil},
		"onto itself":            {Drain{ServerID: "one"}, []server.Room{on("one", 9, 0)}, nil, []string{"c", "b", "a"}},
		"places for two":         {Drain{}, []server.Room{on("one", 1, 0), on("two", 1, 0)}, nil, []string{"a"}},
		"connections for one":    {Drain{}, []server.Room{on("one", 9, 40)}, nil, []string{"b", "a"}},
		"only there":             {Drain{To: "two"}, []server.Room{on("one", 9, 0), on("two", 2, 0)}, nil, []string{"a"}},
		"a newer one as such":    {Drain{}, []server.Room{newer}, nil, []string{"c", "b", "a"}},
		"a newer one by name":    {Drain{To: "new"}, []server.Room{newer}, nil, nil},
		"a name is taken there":  {Drain{}, []server.Room{on("one", 9, 0)}, taken, []string{"b"}},
		"a name is taken by one": {Drain{}, []server.Room{on("one", 9, 0), on("two", 9, 0)}, taken, nil},
	} {
		var lack []string
		if c.drain.ServerID == "" {
			c.drain.ServerID = "old"
		}
		for _, p := range c.drain.Plan(c.rooms, c.names, all, noon) {
			if (p.Why == "") != (p.To.ID != "") {
				t.Errorf("%s: %+v", name, p)
			}
			if p.Why != "" {
				lack = append(lack, p.Record.Name)
			}
		}
		if fmt.Sprint(lack) != fmt.Sprint(c.lack) {
			t.Errorf("%s: %v, want %v", name, lack, c.lack)
		}
	}
}
