package move

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Drain moves all databases of a server to others, some at a time. The server takes no new ones meanwhile and afterwards.
type Drain struct {
	ServerID id.ServerID `db:"server_id"`
	To       id.ServerID `db:"to_id"`     // the one server that takes them; empty: any that has room
	AtOnce   int         `db:"at_once"`   // how many move at a time
	Closed   bool        `db:"closed"`    // those that cannot be followed are moved closed
	Forward  int64       `db:"forward_s"` // for how many seconds the server sends on
	Remove   bool        `db:"remove"`    // the server, once nothing is on it
	By       string      `db:"ordered_by"`
	Reason   string      `db:"reason"`

	CreatedAt time.Time  `db:"created_at"`
	EndedAt   *time.Time `db:"ended_at"`
	State     DrainState `db:"state"`
	Why       string     `db:"why"` // it goes no further
}

// DrainState says how far a drain is.
type DrainState string

// The states of drains. The last three are final.
const (
	Draining DrainState = "draining"
	Drained  DrainState = "drained" // no database is on the server; deleted ones may be
	Stuck    DrainState = "stuck"   // what is left cannot be moved
	Stopped  DrainState = "stopped" // by an operator
)

// DrainStates lists them.
var DrainStates = []DrainState{Draining, Drained, Stuck, Stopped}

// DrainItem is a database that a drain has tried to move.
type DrainItem struct {
	ServerID    id.ServerID    `db:"server_id"`
	DatabaseID  id.DatabaseID  `db:"database_id"`
	OperationID id.OperationID `db:"operation_id"` // of its last move; empty: none was begun
	Tries       int            `db:"tries"`
	NextAt      time.Time      `db:"next_at"`
	Why         string         `db:"why"`    // the last try failed
	Failed      string         `db:"failed"` // what its last move failed with; not stored
}

// Bounds of a drain.
const (
	DefaultAtOnce = 2
	MostAtOnce    = 20
	mostTries     = 3
	triesApart    = time.Minute
)

// Tried is an item after another try: a move that was ordered, or why there is none.
func (i DrainItem) Tried(op id.OperationID, why string, now time.Time) DrainItem {
	i.OperationID, i.Why = op, why
	i.Tries++
	i.NextAt = now.Add(triesApart)
	return i
}

// Waiting is an item that something else is in the way of for now: that is no try.
func (i DrainItem) Waiting(why string, now time.Time) DrainItem {
	i.Why, i.NextAt = why, now.Add(triesApart)
	return i
}

// GivenUp reports whether a drain does not try to move a database any more.
func (i DrainItem) GivenUp() bool { return i.Tries >= mostTries }

// Remaining is a database that is still on a server that is drained. Moving says that its move is open.
type Remaining struct {
	database.Record
	Moving bool
	Item   DrainItem
}

// Next decides which databases are to be moved now, and whether the drain has come to an end: nothing is left, or nothing that it
// could still move.
func (d Drain) Next(left []Remaining, now time.Time) (move []id.DatabaseID, state DrainState) {
	moving, hopeless := 0, 0
	var ready []Remaining
	for _, s := range left {
		switch {
		case s.Moving:
			moving++
		case s.Item.GivenUp():
			hopeless++
		case !now.Before(s.Item.NextAt):
			ready = append(ready, s)
		}
	}
	slices.SortFunc(ready, func(a, b Remaining) int {
		return cmp.Or(cmp.Compare(a.Item.Tries, b.Item.Tries), cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range ready[:min(len(ready), max(0, d.AtOnce-moving))] {
		move = append(move, s.ID)
	}
	switch {
	case len(left) == 0:
		return nil, Drained
	case hopeless == len(left):
		return nil, Stuck
	}
	return move, Draining
}

// Planned is where a database of a drained server would go; Why says that no server takes it.
type Planned struct {
	Record database.Record
	To     server.Server
	Why    string
}

// Version is the version of PostgreSQL of the server that takes a database: its own or, where one server takes all of them, that
// one's, if the database may become of it.
func (d Drain) Version(rooms []server.Room, r database.Record) int {
	for _, to := range rooms {
		if to.ID == d.To && MayBecome(r, to.PostgresVersion) == nil {
			return to.PostgresVersion
		}
	}
	return r.PostgresVersion
}

// Plan counts the room: where each of the databases would go, the largest in connections first. rooms are those of the servers
// that may take them, names the names that each of them has.
func (d Drain) Plan(rooms []server.Room, names map[id.ServerID]map[string]bool, all []database.Record, now time.Time) []Planned {
	rooms = slices.DeleteFunc(slices.Clone(rooms), func(r server.Room) bool {
		return r.ID == d.ServerID || d.To != "" && r.ID != d.To
	})
	all = slices.SortedStableFunc(slices.Values(all), func(a, b database.Record) int {
		return cmp.Or(cmp.Compare(b.ReservedConnections(), a.ReservedConnections()), cmp.Compare(a.Name, b.Name))
	})
	plan := make([]Planned, 0, len(all))
	for _, r := range all {
		for i := range rooms {
			rooms[i].Named = names[rooms[i].ID][r.Name]
		}
		one := Planned{Record: r, Why: "no server that takes databases has room for it, and none of its name"}
		needs := server.Needs{Now: now, Connections: r.ReservedConnections(), Postgres: d.Version(rooms, r), Leaving: d.ServerID}
		if to, some := server.Pick(rooms, needs); some {
			one.To, one.Why = to, ""
			at := slices.IndexFunc(rooms, func(o server.Room) bool { return o.ID == to.ID })
			rooms[at].Held++
			rooms[at].Sold += r.ReservedConnections()
		}
		plan = append(plan, one)
	}
	return plan
}
