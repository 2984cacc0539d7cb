package store

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Servers is the suite of ports.Servers.
func Servers(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a server comes back as it was stored", serverComesBack},
		{"a name is unique", serverNameIsUnique},
		{"the one with the most room is picked", roomiestIsPicked},
		{"one of the version is picked", versionIsPicked},
		{"connections are counted", connectionsAreCounted},
		{"the last place goes to one", lastPlaceGoesToOne},
		{"a deleted database takes a place", deletedTakesAPlace},
		{"the last connections go to a recovery or a new database", lastConnectionsGoToOne},
		{"one that is avoided is picked last", avoidedIsLast},
		{"answers of its agent are kept", answersAreKept},
		{"what is taken of each server is counted", roomIsCounted},
		{"a database moves where its name is free", elsewhereIsAnother},
		{"what moves takes room on both", movingTakesRoom},
		{"an installation is registered once", installationIsUnique},
		{"what stands on a server is counted", standingIsCounted},
		{"a server goes when nothing stands on it", emptyServerGoes},
		{"a removal or a placement comes first", removalMeetsPlacement},
	})
}

func serverComesBack(w *world) {
	second := w.addServer("a-second", 3)
	stands := func(want ...server.Server) {
		w.Helper()
		w.equal("the list, by name", read0(w, ports.Tx.Servers, ports.Servers.List), want)
		w.equal("their IDs", read0(w, ports.Tx.Servers, ports.Servers.IDs), []id.ServerID{want[0].ID, want[1].ID})
		w.equal("the server", read(w, ports.Tx.Servers, ports.Servers.Get, want[0].ID), want[0])
	}
	stands(second, w.server)
	second.AgentURL, second.SealedSecret, second.CA = "https://moved:1", []byte{9}, ""
	second.PublicHost, second.PublicPort, second.Capacity, second.Enabled = "moved", 1, 0, false
	second.Connections, second.Installation = 7, "i"
	saved := second
	saved.SealedArchiveKey = nil // it stays
	w.update(writing(ports.Tx.Servers, ports.Servers.Save, saved))
	stands(second, w.server)
	w.missing("an unknown server", reading(ports.Tx.Servers, ports.Servers.Get, newID[id.ServerID]()))
	w.update(writing(ports.Tx.Servers, ports.Servers.Lock, second.ID))
	second.ID = newID[id.ServerID]()
	w.unknown("locking an unknown server", writing(ports.Tx.Servers, ports.Servers.Lock, second.ID))
	w.unknown("saving an unknown server", writing(ports.Tx.Servers, ports.Servers.Save, second))
}

func installationIsUnique(w *world) {
	second := w.addServer("second", 3)
	w.saveServer(second, func(s *server.Server) { s.Installation = "i" })
	third := w.addServer("third", 3)
	third.Installation = "i"
	w.refused("another's", invalid("agentUrl"), writing(ports.Tx.Servers, ports.Servers.Save, third))
	third.ID, third.Name = newID[id.ServerID](), "fourth"
	w.refused("another's at once", invalid("agentUrl"), writing(ports.Tx.Servers, ports.Servers.Add, third))
}

func standingIsCounted(w *world) {
	second := w.addServer("second", 9)
	contents := func(on id.ServerID) server.Contents { return read(w, ports.Tx.Servers, ports.Servers.Contents, on) }
	w.equal("an empty one", contents(second.ID), server.Contents{})
	w.equal("an unknown one", contents(newID[id.ServerID]()), server.Contents{})
	shop := w.addDatabase("shop", nameServer(second.ID), func(r *database.Record) { r.ConnectionCap = 10 })
	w.addDatabase("blog", func(r *database.Record) { r.ServerID, r.Status, r.ConnectionCap = second.ID, database.Deleted, 20 })
	w.addDatabase("news", nameServer(w.server.ID))
	o := w.work(shop.ID)
	o.ServerID = second.ID
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, o))
	w.equal("with databases", contents(second.ID), server.Contents{
		Databases: 1, Deleted: 1, Sold: 10 + database.SpareConnections, Operations: 1,
	})
}

func emptyServerGoes(w *world) {
	second := w.addServer("second", 9)
	remove := writing(ports.Tx.Servers, ports.Servers.Remove, second.ID)
	w.update(writing(ports.Tx.Qualifications, ports.Qualifications.Put, extension.Qualification{
		ServerID: second.ID, Extension: extension.Citext, At: epoch,
	}))
	w.update(remove)
	w.unknown("again", remove)
	w.missing("it is gone", reading(ports.Tx.Servers, ports.Servers.Get, second.ID))
	w.addDatabase("shop", nameServer(w.server.ID))
	w.refused("with a database", ports.ErrReferenced, writing(ports.Tx.Servers, ports.Servers.Remove, w.server.ID))
}

// removalMeetsPlacement has a server picked and removed at the same moment: no database is ever on one that is gone.
func removalMeetsPlacement(w *world) {
	w.saveServer(w.server, func(s *server.Server) { s.Enabled = false })
	for i := range 10 {
		s := w.addServer(numbered(i), 1)
		r := w.record("d" + numbered(i))
		errs := w.atOnce(2, func(who int) transaction {
			if who == 0 {
				return w.placing(r, 1)
			}
			return inOrder(writing(ports.Tx.Servers, ports.Servers.Lock, s.ID), writing(ports.Tx.Servers, ports.Servers.Remove, s.ID))
		})
		in, gone := errs[0], errs[1]
		if (in == nil) == (gone == nil) || in != nil && !sameError(in, ports.ErrNoRow) ||
			gone != nil && !sameError(gone, ports.ErrReferenced) {
			w.Fatalf("placed: %v, removed: %v", in, gone)
		}
		if gone != nil {
			w.saveServer(s, func(s *server.Server) { s.Enabled = false })
		}
	}
}

// placing stores a record where one is picked for it, else it is ErrNoRow.
func (w *world) placing(r database.Record, connections int) transaction {
	return func(ctx context.Context, tx ports.Tx) error {
		rooms, err := tx.Servers().Rooms(ctx, "")
		if err != nil {
			return err
		}
		s, some := server.Pick(rooms, server.Needs{Now: epoch, Connections: connections, Postgres: pgversion.Default})
		if !some {
			return ports.ErrNoRow
		}
		r.ServerID = s.ID
		return tx.Databases().Add(ctx, r)
	}
}

func serverNameIsUnique(w *world) {
	second := w.addServer("second", 3)
	second.Name = w.server.Name
	w.refused("taking another's name", invalid("name"), writing(ports.Tx.Servers, ports.Servers.Save, second))
	second.ID = newID[id.ServerID]()
	w.refused("a name that is in use", invalid("name"), writing(ports.Tx.Servers, ports.Servers.Add, second))
}

// picks demands a server by its name, or none, for a database that takes one connection and that is not stored.
func (w *world) picks(what, want string, change ...func(*server.Needs)) {
	w.Helper()
	w.picksFor("", what, want, change...)
}

// picksFor is picks for a database of a name.
func (w *world) picksFor(name, what, want string, change ...func(*server.Needs)) {
	w.Helper()
	rooms := readLocked(w, ports.Tx.Servers, ports.Servers.Rooms, name)
	needs := changed(server.Needs{Now: epoch, Connections: 1, Postgres: pgversion.Default}, change)
	if got, _ := server.Pick(rooms, needs); got.Name != want {
		w.Errorf("%s: %q was picked, want %q", what, got.Name, want)
	}
}

func (w *world) room(of id.ServerID, named string) server.Room {
	w.Helper()
	return readLocked(w, ports.Tx.Servers, func(s ports.Servers, ctx context.Context, of id.ServerID) (server.Room, error) {
		return s.Room(ctx, of, named)
	}, of)
}

func roomIsCounted(w *world) {
	second := w.addServer("a-second", 1)
	r := w.addDatabase("shop", func(r *database.Record) { r.ConnectionCap = 10 })
	w.addDatabase("gone", func(r *database.Record) { r.Status = database.Deleted })
	first := server.Room{Server: w.server, Held: 2, Sold: r.ReservedConnections()}
	w.equal("of each, by name", readLocked(w, ports.Tx.Servers, ports.Servers.Rooms, ""), []server.Room{{Server: second}, first})
	w.equal("of one", w.room(w.server.ID, "other"), first)
	first.Named = true
	w.equal("with a name that is there", w.room(w.server.ID, "shop"), first)
	w.equal("with that of a deleted one", w.room(w.server.ID, "gone"), first)
	w.saveServer(second, func(s *server.Server) { s.Enabled = false })
	w.equal("of the enabled ones", readLocked(w, ports.Tx.Servers, ports.Servers.Rooms, "shop"), []server.Room{first})
	w.equal("of a disabled one", w.room(second.ID, "").ID, second.ID)
	w.unknown("of an unknown one", reading2(ports.Tx.Servers, ports.Servers.Room, newID[id.ServerID](), ""))
}

func (w *world) saveServer(s server.Server, change func(*server.Server)) {
	w.Helper()
	change(&s)
	w.update(writing(ports.Tx.Servers, ports.Servers.Save, s))
}

func versionIsPicked(w *world) {
	second := w.addServer("second", 1)
	w.saveServer(second, func(s *server.Server) { s.PostgresVersion = 17 })
	unknown := w.addServer("unknown", 1000)
	w.saveServer(unknown, func(s *server.Server) { s.PostgresVersion = 0 })
	for version, name := range map[int]string{16: w.server.Name, 17: "second", 18: "", 0: ""} {
		w.picks("of PostgreSQL "+numbered(version), name, func(n *server.Needs) { n.Postgres = version })
	}
}

func roomiestIsPicked(w *world) {
	w.saveServer(w.server, func(s *server.Server) { s.Capacity = 2 })
	second := w.addServer("second", 3)
	for i, want := range []server.Server{second, w.server, second, w.server, second} {
		w.picks("database "+numbered(i), want.Name)
		w.addDatabase(numbered(i), nameServer(want.ID))
	}
	w.picks("with all servers full", "")
	third := w.addServer("third", 1)
	w.saveServer(third, func(s *server.Server) { s.Enabled = false })
	w.picks("with only a disabled server empty", "")
}

// connectionsAreCounted fills a server with databases of several caps, the last place with one that fits exactly.
func connectionsAreCounted(w *world) {
	needing := func(n int) func(*server.Needs) { return func(p *server.Needs) { p.Connections = n } }
	capped := func(n int) func(*database.Record) { return func(r *database.Record) { r.ConnectionCap = n } }
	optedIn := func(r *database.Record) {
		r.Overlay = database.Overlay{OverlayID: newID[id.OperationID](), OverlayStatus: database.OverlayReserved}
	}
	left := 300
	w.saveServer(w.server, func(s *server.Server) { s.Connections = left })
	w.picks("all of them at once", "first", needing(left))
	w.picks("one too many", "", needing(left+1))
	for _, c := range []struct {
		what, name string
		change     []func(*database.Record)
	}{
		{"beside a cap of 20", "small", []func(*database.Record){capped(20)}},
		{"beside a cap of 20 with additional roles", "roles", []func(*database.Record){capped(20), optedIn}},
		{"beside a database without a cap", "uncapped", []func(*database.Record){capped(0)}},
		{"beside one without a cap with additional roles", "open", []func(*database.Record){capped(0), optedIn}},
	} {
		left -= w.addDatabase(c.name, c.change...).ReservedConnections()
		w.picks(c.what, "first", needing(left))
		w.picks(c.what+", one too many", "", needing(left+1))
	}
	w.addServer("uncounted", 1)
	w.picks("on a server that counts none", "uncounted", needing(left+1))
	w.saveServer(w.server, func(s *server.Server) { s.Connections = 0 })
	w.picks("with none counted", "first", needing(left+1))
}

// lastPlaceGoesToOne has two hosts place databases at the same time where room is left for one, by number and by connections.
func lastPlaceGoesToOne(w *world) {
	needed := w.record("").ReservedConnections()
	limits := map[string]func(*server.Server){
		"capacity":    func(s *server.Server) { s.Capacity = 1 },
		"connections": func(s *server.Server) { s.Connections = 2*needed - 1 },
	}
	w.saveServer(w.server, func(s *server.Server) { s.Enabled = false })
	for what, limit := range limits {
		only := w.addServer(what, 100)
		w.saveServer(only, limit)
		w.equal("placed by "+what, w.race(8, ports.ErrNoRow, func(i int) transaction {
			return w.placing(w.record(numbered(i)), needed)
		}), 1)
		w.saveServer(only, func(s *server.Server) { s.Enabled = false })
	}
}

// fits demands that so many connections of a server are free, or not.
func (w *world) fits(what string, of id.ServerID, connections int, want bool) {
	w.Helper()
	w.equal(what, w.room(of, "").Lacks(connections) == "", want)
}

func deletedTakesAPlace(w *world) {
	capped := func(status database.Status) func(*database.Record) {
		return func(r *database.Record) { r.ConnectionCap, r.Status = 35, status }
	}
	w.saveServer(w.server, func(s *server.Server) { s.Connections, s.Capacity = 100, 5 })
	needing := func(n int) func(*server.Needs) { return func(p *server.Needs) { p.Connections = n } }
	free := func(what string, n int) {
		w.Helper()
		w.picks(what+": as many as are free", "first", needing(n))
		w.picks(what+": one more", "", needing(n+1))
		w.fits(what+": as many as are free, for a recovery", w.server.ID, n, true)
		w.fits(what+": one more, for a recovery", w.server.ID, n+1, false)
	}
	w.addDatabase("live", capped(database.Stopped))
	r := w.addDatabase("shop", capped(database.Deleted))
	w.addDatabase("purged", capped(database.Purging))
	free("beside deleted ones", 60)
	o := w.addWork(r.ID, func(o *operation.Operation) { o.Kind = deletion.KindRecover })
	free("while one is recovered", 20)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Failed)))
	free("when that has failed", 60)
	w.addDatabase("fails", capped(database.Deleting))
	free("beside one whose deletion may fail", 20)
	w.addDatabase("last", capped(database.Deleted))
	w.picks("with a place for none", "", needing(1))
	w.fits("for a recovery, which has its place", w.server.ID, 20, true)
	w.saveServer(w.server, func(s *server.Server) { s.Connections, s.Enabled = 100, false })
	w.fits("on a server that takes no new ones", w.server.ID, 20, true)
	w.fits("on a server that takes no new ones, one too many", w.server.ID, 21, false)
	w.saveServer(w.server, func(s *server.Server) { s.Connections = 0 })
	w.fits("with none counted", w.server.ID, 1000, true)
}

// lastConnectionsGoToOne has recoveries and creations of two hosts take the connections that are left, which suffice for one.
func lastConnectionsGoToOne(w *world) {
	needed := w.record("").ReservedConnections()
	w.saveServer(w.server, func(s *server.Server) { s.Connections = 2*needed - 1 })
	var deleted [4]database.Record
	for i := range deleted {
		deleted[i] = w.addDatabase("deleted-"+numbered(i), func(r *database.Record) { r.Status = database.Deleted })
	}
	w.equal("taken", w.race(2*len(deleted), ports.ErrNoRow, func(i int) transaction {
		if i%4 < 2 {
			return func(ctx context.Context, tx ports.Tx) error { return w.recoverOn(ctx, tx, deleted[i/4*2+i%2]) }
		}
		return w.placing(w.record(numbered(i)), needed)
	}), 1)
}

// recoverOn stores a recovery where its server has the connections, else it is ErrNoRow.
func (w *world) recoverOn(ctx context.Context, tx ports.Tx, r database.Record) error {
	room, err := tx.Servers().Room(ctx, r.ServerID, "")
	if err == nil && room.Lacks(r.ReservedConnections()) != "" {
		err = ports.ErrNoRow
	}
	if err != nil {
		return err
	}
	o := w.work(r.ID)
	o.Kind = deletion.KindRecover
	return tx.Operations().Add(ctx, o)
}

func avoidedIsLast(w *world) {
	avoid := func(s server.Server, until *time.Time) {
		w.Helper()
		w.update(writing2(ports.Tx.Servers, ports.Servers.Avoid, s.ID, until))
	}
	second, until := w.addServer("second", 1000), epoch.Add(time.Minute)
	at := func(t time.Time) func(*server.Needs) { return func(p *server.Needs) { p.Now = t } }
	avoid(second, &until)
	w.picks("while the roomiest is avoided", "first", at(until.Add(-time.Microsecond)))
	w.picks("once it is not", "second", at(until))
	w.saveServer(second, func(s *server.Server) { s.Capacity = 2000 })
	w.picks("while the roomiest is avoided, and was changed", "first")
	w.saveServer(w.server, func(s *server.Server) { s.Enabled = false })
	w.picks("with nothing but the avoided one", "second")
	w.saveServer(w.server, func(s *server.Server) { s.Enabled = true })
	avoid(second, nil)
	w.picks("when it has answered", "second")
	w.unknown("avoiding an unknown server", writing2(ports.Tx.Servers, ports.Servers.Avoid, newID[id.ServerID](), &until))
}

func answersAreKept(w *world) {
	answered, since := epoch.Add(time.Minute), epoch.Add(2*time.Minute)
	storage, ca := "", ""
	seen := func(what string, at, away *time.Time) {
		w.Helper()
		want := w.server
		want.AnsweredAt, want.AwaySince, want.Storage, want.PublicCA = at, away, storage, ca
		w.equal(what, readLocked(w, ports.Tx.Servers, ports.Servers.Get, w.server.ID), want)
	}
	answers := func(of id.ServerID, at time.Time, storage, ca string) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			return tx.Servers().Answered(ctx, of, at, server.Answer{Storage: storage, PublicCA: ca, PostgresVersion: pgversion.Newest})
		}
	}
	storage, ca = "db1", "the first certificate"
	w.update(answers(w.server.ID, answered, storage, ca))
	seen("an answer", &answered, nil)
	w.update(writing2(ports.Tx.Servers, ports.Servers.Away, w.server.ID, since))
	w.update(writing2(ports.Tx.Servers, ports.Servers.Away, w.server.ID, since.Add(time.Minute)))
	seen("away, as two hosts find", &answered, &since)
	w.saveServer(w.server, func(*server.Server) {})
	seen("a server that was changed meanwhile", &answered, &since)
	w.update(answers(w.server.ID, since, "", ""))
	seen("another answer", &since, nil)
	ca = "the next certificate"
	w.update(answers(w.server.ID, since, "", ca))
	seen("a renewed certificate", &since, nil)
	fresh := w.addServer("unchecked", 1)
	w.saveServer(fresh, func(s *server.Server) { s.PostgresVersion = 0 })
	w.update(answers(fresh.ID, answered, "", ""))
	of := readLocked(w, ports.Tx.Servers, ports.Servers.Get, fresh.ID).PostgresVersion
	w.equal("the version of a server that had not said it", of, pgversion.Newest)
	w.unknown("an answer of an unknown server", answers(newID[id.ServerID](), since, "", ""))
	w.unknown("an unknown server that is away", writing2(ports.Tx.Servers, ports.Servers.Away, newID[id.ServerID](), since))
}

func elsewhereIsAnother(w *world) {
	made := w.addDatabase("orders")
	leaving := func(p *server.Needs) { p.Leaving = w.server.ID }
	w.picksFor(made.Name, "a server to move to, where there is one alone", "", leaving)
	second := w.addServer("second", 10)
	w.picksFor(made.Name, "a server to move to", "second", leaving)
	w.update(writing2(ports.Tx.Servers, ports.Servers.Move, made.ID, second.ID))
	made.ServerID, made.Host, made.Port = second.ID, second.PublicHost, second.PublicPort
	w.equal("the database that was moved", readLocked(w, ports.Tx.Databases, ports.Databases.Lock, made.ID), made)
	again := w.addDatabase("orders")
	w.picksFor(made.Name, "a server to move to, which has the name", "", leaving)
	w.refused("moving to where the name is in use", invalid("name"),
		writing2(ports.Tx.Servers, ports.Servers.Move, again.ID, second.ID))
	third, until := w.addServer("third", 10), epoch.Add(time.Minute)
	w.update(writing2(ports.Tx.Servers, ports.Servers.Avoid, third.ID, &until))
	w.picksFor(made.Name, "a server to move to, which is avoided", "", leaving)
	w.unknown("moving to an unknown server", writing2(ports.Tx.Servers, ports.Servers.Move, again.ID, newID[id.ServerID]()))
	w.unknown("moving an unknown database", writing2(ports.Tx.Servers, ports.Servers.Move, newID[id.DatabaseID](), third.ID))
}

// movingTakesRoom has a database move: its operation names the other server, which is the one that it has left once it has moved.
func movingTakesRoom(w *world) {
	second := w.addServer("second", 10)
	r := w.addDatabase("orders")
	o := w.addWork(r.ID, func(o *operation.Operation) { o.Kind, o.OtherID = "move", second.ID })
	standing := func(what string, on, beside id.ServerID) {
		w.Helper()
		for of, want := range map[id.ServerID]server.Contents{
			on:     {Databases: 1, Sold: r.ReservedConnections(), Operations: 1},
			beside: {Moving: 1, Sold: r.ReservedConnections()},
		} {
			w.equal(what, read(w, ports.Tx.Servers, ports.Servers.Contents, of), want)
			room := w.room(of, "orders")
			w.equal(what+", its room", []any{room.Held, room.Sold, room.Named}, []any{1, r.ReservedConnections(), true})
		}
		got := read(w, ports.Tx.Operations, ports.Operations.Get, o.ID)
		w.equal(what+", the operation", []id.ServerID{got.ServerID, got.OtherID}, []id.ServerID{on, beside})
	}
	standing("before it has moved", w.server.ID, second.ID)
	w.update(writing2(ports.Tx.Servers, ports.Servers.Move, r.ID, second.ID))
	standing("once it has moved", second.ID, w.server.ID)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Succeeded)))
	w.equal("when that is over", read(w, ports.Tx.Servers, ports.Servers.Contents, w.server.ID), server.Contents{})
	w.equal("when that is over, its room", w.room(w.server.ID, "orders").Held, 0)
}
