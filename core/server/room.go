package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Room is a server with what its databases take of it. Whether it takes another one is decided here alone, whoever asks: for a
// database that is created, cloned, recovered, moved, or made anew elsewhere.
type Room struct {
	Server
	Held  int  `db:"held"`  // databases on it, also deleted ones until they are purged
	Sold  int  `db:"sold"`  // connections that those in service, or being recovered, may have together
	Named bool `db:"named"` // one of them has the name that was asked about
}

// Refuses says in words why the server cannot have another database that takes so many connections, of a major version of
// PostgreSQL; empty: it can.
func (r Room) Refuses(connections, postgres int) (why string) {
	switch {
	case !r.Enabled:
		return r.Name + " is disabled, so that it takes no new databases"
	case r.PostgresVersion == 0:
		return r.Name + " has not said which PostgreSQL it has: see pgherd admin server check"
	case r.PostgresVersion != postgres:
		return fmt.Sprintf("%s has PostgreSQL %d, and the database is of %d", r.Name, r.PostgresVersion, postgres)
	case r.Held >= r.Capacity:
		return fmt.Sprintf("%s is full: it has %d databases, with those that are deleted and not purged, and a capacity of %d",
			r.Name, r.Held, r.Capacity)
	}
	return r.Lacks(connections)
}

// Lacks says in words that the server has not so many connections free; empty: it has. It is for a database that has its place
// there already.
func (r Room) Lacks(connections int) (why string) {
	if free := max(0, r.Connections-r.Sold); r.Connections > 0 && free < connections {
		return fmt.Sprintf("%s has not enough connections free: %d are needed, and there are %d", r.Name, connections, free)
	}
	return ""
}

// Away says in words that the server's agent does not answer; empty: it does, or nobody has asked it yet.
func (s Server) Away() (why string) {
	if s.AwaySince == nil {
		return ""
	}
	return fmt.Sprintf("the agent of %s has not answered since %s", s.Name, s.AwaySince.UTC().Format(time.RFC3339))
}

// Needs are what a database needs of a server that is not named.
type Needs struct {
	Now         time.Time
	Connections int // that it takes: database.Record.ReservedConnections
	Postgres    int // its major version of PostgreSQL
	// Near is the server that comes first, if it takes the database, even while it is avoided; empty: none.
	Near id.ServerID
	// Leaving is the server of a database that is to be moved; empty for one that is not placed yet. That server, those that are
	// avoided, and those that have a database of its name are left out.
	Leaving id.ServerID
}

// Versions are the major versions of PostgreSQL that are there, in ascending order and each once.
func Versions(rooms []Room) (there []int) {
	for _, r := range rooms {
		if r.PostgresVersion != 0 {
			there = append(there, r.PostgresVersion)
		}
	}
	slices.Sort(there)
	return slices.Compact(there)
}

// Pick chooses the server for a database: of those that take it, the near one comes first, then one that is not avoided, then the
// one with places for the most databases.
func Pick(rooms []Room, n Needs) (picked Server, some bool) {
	after := func(r Room) int {
		switch {
		case n.Near != "" && r.ID == n.Near:
			return 0
		case r.Avoided(n.Now):
			return 2
		}
		return 1
	}
	fit := slices.DeleteFunc(slices.Clone(rooms), func(r Room) bool {
		leftOut := n.Leaving != "" && (r.ID == n.Leaving || r.Avoided(n.Now) || r.Named)
		return leftOut || r.Refuses(n.Connections, n.Postgres) != ""
	})
	if len(fit) == 0 {
		return picked, false
	}
	return slices.MinFunc(fit, func(a, b Room) int {
		return cmp.Or(cmp.Compare(after(a), after(b)), cmp.Compare(b.Capacity-b.Held, a.Capacity-a.Held), cmp.Compare(a.Name, b.Name))
	}).Server, true
}
