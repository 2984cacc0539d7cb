package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

func sixteen(s Server) Server {
	s.PostgresVersion = 16
	return s
}

func TestWhyAServerTakesNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		room           Room
		refuses, lacks string // what is said; empty: it takes one
	}{
		"with a place": {Room{Server: sixteen(Server{Enabled: true, Capacity: 2, Connections: 50}), Held: 1, Sold: 25}, "", ""},
		"uncounted":    {Room{Server: sixteen(Server{Enabled: true, Capacity: 2}), Held: 1, Sold: 9000}, "", ""},
		"of another version": {
			Room{Server: Server{PostgresVersion: 17, Enabled: true, Capacity: 2}}, "has PostgreSQL 17, and the database is of 16", "",
		},
		"of no known version": {Room{Server: Server{Enabled: true, Capacity: 2}}, "has not said which", ""},
		"disabled":            {Room{Server: Server{Capacity: 2}}, "disabled", ""},
		"full":                {Room{Server: sixteen(Server{Enabled: true, Capacity: 2}), Held: 2}, "it has 2 databases", ""},
		"one connection too few": {
			Room{Server: sixteen(Server{Enabled: true, Capacity: 2, Connections: 50}), Sold: 26}, "there are 24", "there are 24",
		},
		"oversold": {
			Room{Server: sixteen(Server{Enabled: true, Capacity: 2, Connections: 50}), Sold: 90}, "there are 0", "there are 0",
		},
	} {
		for what, said := range map[string][2]string{
			"refuses": {c.room.Refuses(25, 16), c.refuses}, "lacks": {c.room.Lacks(25), c.lacks},
		} {
			if got, want := said[0], said[1]; (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: it %s %q, want %q", name, what, got, want)
			}
		}
	}
}

func TestPick(t *testing.T) {
	now := time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	room := func(name string, places int, change ...func(*Room)) Room {
		r := Room{Server: Server{ID: id.ServerID(name), Name: name, PostgresVersion: 16, Enabled: true, Capacity: places + 3}, Held: 3}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	avoided := func(r *Room) { r.AvoidedUntil = &later }
	named := func(r *Room) { r.Named = true }
	newer := func(r *Room) { r.PostgresVersion = 17 }
	for name, c := range map[string]struct {
		rooms   []Room
		near    id.ServerID
		leaving id.ServerID
		want    string // empty: none
	}{
		"none":                           {},
		"one of its version":             {rooms: []Room{room("a", 1), room("b", 2, newer)}, want: "a"},
		"only newer ones":                {rooms: []Room{room("b", 2, newer)}},
		"only full ones":                 {rooms: []Room{room("a", 0)}},
		"the roomiest":                   {rooms: []Room{room("a", 1), room("b", 2)}, want: "b"},
		"of equal ones the first":        {rooms: []Room{room("b", 2), room("a", 2)}, want: "a"},
		"one that is not avoided":        {rooms: []Room{room("a", 1), room("b", 2, avoided)}, want: "a"},
		"an avoided one, without others": {rooms: []Room{room("a", 0), room("b", 2, avoided)}, want: "b"},
		"whatever names it has":          {rooms: []Room{room("a", 1, named)}, want: "a"},
		"the near one":                   {rooms: []Room{room("a", 1, avoided), room("b", 2)}, near: "a", want: "a"},
		"another one, if that is full":   {rooms: []Room{room("a", 0), room("b", 2)}, near: "a", want: "b"},
		"not the one that is left":       {rooms: []Room{room("a", 9), room("b", 1)}, leaving: "a", want: "b"},
		"no avoided one for a move":      {rooms: []Room{room("b", 1, avoided)}, leaving: "a"},
		"none with its name for a move":  {rooms: []Room{room("b", 1, named)}, leaving: "a"},
	} {
		got, some := Pick(c.rooms, Needs{Now: now, Connections: 1, Postgres: 16, Near: c.near, Leaving: c.leaving})
		if got.Name != c.want || some != (c.want != "") {
			t.Errorf("%s: %q, want %q", name, got.Name, c.want)
		}
	}
}

func TestWhichVersionsThereAre(t *testing.T) {
	var rooms []Room
	for _, v := range []int{18, 0, 16, 18} {
		rooms = append(rooms, Room{Server: Server{PostgresVersion: v}})
	}
	if got := Versions(rooms); !slices.Equal(got, []int{16, 18}) {
		t.Errorf("%v", got)
	}
}
