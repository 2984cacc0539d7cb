package store

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Forwards is the suite of ports.Forwards and ports.Drains.
func Forwards(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a forward comes back as it was stored", forwardComesBack},
		{"a forward goes with its database, and holds its server", forwardGoesWithItsDatabase},
		{"those that have waited longest are due first", dueForwards},
		{"a server sends on by the name of a database", forwardsByName},
		{"a drain comes back as it was stored, with its items", drainComesBack},
	})
}

func (w *world) addForward(db id.DatabaseID, on id.ServerID, change ...func(*move.Forward)) move.Forward {
	w.Helper()
	f := changed(move.Forward{
		DatabaseID: db, ServerID: on, CreatedAt: epoch, Until: epoch.Add(time.Hour), NextAt: epoch,
	}, change)
	w.update(writing(ports.Tx.Forwards, ports.Forwards.Put, f))
	return f
}

func forwardComesBack(w *world) {
	r, second := w.addDatabase("shop"), w.addServer("second", 3)
	f := w.addForward(r.ID, second.ID)
	w.equal("as it was added", read(w, ports.Tx.Forwards, ports.Forwards.Of, r.ID), []move.Forward{f})
	at := epoch.Add(time.Minute)
	f.EndedAt, f.Generation, f.Sent, f.Address, f.Welcomed, f.WelcomeGeneration = &at, 3, "mark", "192.0.2.1", w.server.ID, 4
	f.NextAt, f.Failures, f.Trouble, f.Until = at, 2, "it does not answer", at
	w.addForward(r.ID, second.ID, func(stored *move.Forward) { *stored = f })
	w.equal("as it was stored again", read0(w, ports.Tx.Forwards, ports.Forwards.List), []move.Forward{f})
	remove := writing2(ports.Tx.Forwards, ports.Forwards.Remove, r.ID, second.ID)
	w.update(remove)
	w.unknown("once more", remove)
	w.equal("gone", len(read0(w, ports.Tx.Forwards, ports.Forwards.List)), 0)
}

func forwardGoesWithItsDatabase(w *world) {
	r, second := w.addDatabase("shop"), w.addServer("second", 3)
	w.addForward(r.ID, second.ID)
	w.equal("counted", read(w, ports.Tx.Servers, ports.Servers.Contents, second.ID).Forwards, 1)
	w.refused("its server", ports.ErrReferenced, writing(ports.Tx.Servers, ports.Servers.Remove, second.ID))
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.equal("gone", len(read0(w, ports.Tx.Forwards, ports.Forwards.List)), 0)
	w.update(writing(ports.Tx.Servers, ports.Servers.Remove, second.ID))
}

func forwardsByName(w *world) {
	second, third := w.addServer("second", 3), w.addServer("third", 3)
	r := w.addDatabase("shop")
	f := w.addForward(r.ID, second.ID)
	w.addForward(w.addDatabase("other").ID, second.ID)
	w.addForward(r.ID, third.ID)
	named := func(name string) []move.Forward {
		return read2(w, ports.Tx.Forwards, ports.Forwards.Named, second.ID, name)
	}
	w.equal("of the name", named("shop"), []move.Forward{f})
	w.equal("of no such name", len(named("sho")), 0)
}

func dueForwards(w *world) {
	second := w.addServer("second", 9)
	at := func(minutes int) func(*move.Forward) {
		return func(f *move.Forward) { f.NextAt = epoch.Add(time.Duration(minutes) * time.Minute) }
	}
	last := w.addForward(w.addDatabase("c").ID, second.ID, at(2))
	first := w.addForward(w.addDatabase("b").ID, second.ID, at(1))
	w.addForward(w.addDatabase("a").ID, second.ID, at(3))
	due := read(w, ports.Tx.Forwards, ports.Forwards.Due, epoch.Add(2*time.Minute))
	w.equal("due", due, []move.Forward{first, last})
}

func drainComesBack(w *world) {
	second := w.addServer("second", 9)
	d := move.Drain{ServerID: second.ID, AtOnce: 2, By: "ada", Reason: "it is old", CreatedAt: epoch, State: move.Draining}
	put := func() { w.update(writing(ports.Tx.Drains, ports.Drains.Put, d)) }
	list := func(open bool) []move.Drain { return read(w, ports.Tx.Drains, ports.Drains.List, open) }
	w.unknown("before", reading(ports.Tx.Drains, ports.Drains.Lock, second.ID))
	put()
	w.equal("open", list(true), []move.Drain{d})
	d.To, d.Closed, d.Forward, d.Remove = w.server.ID, true, 60, true
	put()
	w.equal("changed", readLocked(w, ports.Tx.Drains, ports.Drains.Lock, second.ID), d)
	item := move.DrainItem{ServerID: second.ID, DatabaseID: newID[id.DatabaseID](), NextAt: epoch, Why: "no room"}
	put2 := func() { w.update(writing(ports.Tx.Drains, ports.Drains.PutItem, item)) }
	put2()
	item.OperationID, item.Tries, item.Why = newID[id.OperationID](), 2, ""
	put2()
	items := func() []move.DrainItem { return read(w, ports.Tx.Drains, ports.Drains.Items, second.ID) }
	w.equal("its item", items(), []move.DrainItem{item})
	on := func(r *database.Record) { r.ServerID = second.ID }
	other := w.addWork(w.addDatabase("backed", on).ID)
	moving := func() []id.DatabaseID { return read(w, ports.Tx.Drains, ports.Drains.Moving, second.ID) }
	w.equal("moving, with other work", len(moving()), 0)
	tried := w.addWork(w.addDatabase("shop", on).ID, func(o *operation.Operation) { o.Kind, o.ErrorText = move.Kind, "it is away" })
	w.equal("moving", moving(), []id.DatabaseID{tried.DatabaseID})
	for _, o := range []operation.Operation{other, tried} {
		w.update(writing2(ports.Tx.Servers, ports.Servers.Move, o.DatabaseID, w.server.ID))
	}
	w.equal("moving, once it has moved", len(moving()), 0)
	item.OperationID = tried.ID
	put2()
	item.Failed = tried.ErrorText
	w.equal("its item, with what the move failed with", items(), []move.DrainItem{item})
	w.update(writing(ports.Tx.Drains, ports.Drains.Forget, second.ID))
	w.equal("forgotten", len(items()), 0)
	put2()
	at := epoch.Add(time.Hour)
	d.EndedAt, d.State, d.Why = &at, move.Stuck, "one is left"
	put()
	w.equal("open, once it has ended", len(list(true)), 0)
	w.equal("all", list(false), []move.Drain{d})
	w.update(writing(ports.Tx.Servers, ports.Servers.Remove, second.ID))
	w.equal("without its server", len(list(false)), 0)
}
