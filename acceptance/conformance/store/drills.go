package store

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Drills is the suite of ports.Drills.
func Drills(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"servers are listed when a drill of theirs is due", drillsAreDue},
		{"a server has one drill at a time, which ends once", oneDrillAtATime},
		{"the last drill that says something is found", lastDrillIsFound},
		{"drills come in pages, newest first", drillPages},
		{"old drills are forgotten, and those of what is gone", drillsAreForgotten},
	})
}

func (w *world) drillOf(db id.DatabaseID, minute int) drill.Drill {
	return drill.Drill{
		ID: newID[id.DrillID](), ServerID: w.server.ID, DatabaseID: db, PointInTime: minutes(minute - 5),
		Filename: "20260105_093000.sql.gz", ManifestSHA256: strings.Repeat("a", 64), Repeats: minute%2 == 1,
		BegunAt: minutes(minute), Facts: json.RawMessage("null"),
	}
}

func (w *world) addDrill(db id.DatabaseID, minute int) drill.Drill {
	w.Helper()
	d := w.drillOf(db, minute)
	w.update(writing(ports.Tx.Drills, ports.Drills.Add, d))
	return d
}

// drilled adds a drill that has ended.
func (w *world) drilled(db id.DatabaseID, minute int, o drill.Outcome) drill.Drill {
	w.Helper()
	d := w.addDrill(db, minute).Ended(minutes(minute+1), drill.Found{Outcome: o, Why: "why", Facts: drill.Facts{
		Database: "shop", Took: drill.Took{FetchMs: 1, ReplayMs: 2, CompareMs: 3},
	}})
	w.update(writing(ports.Tx.Drills, ports.Drills.End, d))
	return d
}

func drillsAreDue(w *world) {
	due := func(minute int) []ports.DrillServer {
		return read(w, ports.Tx.Drills, ports.Drills.Due, minutes(minute))
	}
	unplanned := ports.DrillServer{Server: w.server, Plan: drill.Plan{ServerID: w.server.ID}}
	w.equal("without a plan", due(1), []ports.DrillServer{unplanned})
	unlocked := drill.Plan{ServerID: w.server.ID, DueAt: minutes(3)}
	w.unknown("what nobody has locked", writing(ports.Tx.Drills, ports.Drills.SavePlan, unlocked))
	w.unknown("an unknown server", reading(ports.Tx.Drills, ports.Drills.LockPlan, newID[id.ServerID]()))
	w.equal("nothing", readLocked(w, ports.Tx.Drills, ports.Drills.LockPlan, w.server.ID), unplanned.Plan)
	shop := w.addDatabase("shop")
	plan := drill.Plan{
		ServerID: w.server.ID, DueAt: minutes(3), DatabaseID: shop.ID, PointInTime: new(minutes(1)), Repeats: true,
		UnprovenSince: new(minutes(2)),
	}
	w.update(writing(ports.Tx.Drills, ports.Drills.SavePlan, plan))
	w.equal("the plan", readLocked(w, ports.Tx.Drills, ports.Drills.LockPlan, w.server.ID), plan)
	w.equal("before it is due", len(due(2)), 0)
	w.equal("once it is due", due(3), []ports.DrillServer{{Server: w.server, Plan: plan}})
	w.addDatabase("creating", func(r *database.Record) { r.Status = database.Creating })
	stopped := w.addDatabase("stopped", func(r *database.Record) { r.Status = database.Stopped })
	w.addDeleted("gone", 1)
	want := []id.DatabaseID{shop.ID, stopped.ID}
	slices.Sort(want)
	w.equal("databases", read(w, ports.Tx.Drills, ports.Drills.Databases, w.server.ID), want)
}

func oneDrillAtATime(w *world) {
	shop := w.addDatabase("shop").ID
	w.unknown("none", reading(ports.Tx.Drills, ports.Drills.Open, w.server.ID))
	d := w.addDrill(shop, 1)
	w.equal("the one that goes on", read(w, ports.Tx.Drills, ports.Drills.Open, w.server.ID), d)
	if err := w.Store.Update(w.Context(), writing(ports.Tx.Drills, ports.Drills.Add, w.drillOf(shop, 2))); err == nil {
		w.Error("another one was added")
	}
	d = d.Ended(minutes(3), drill.Found{Outcome: drill.Proven})
	w.update(writing(ports.Tx.Drills, ports.Drills.End, d))
	w.unknown("it has ended", writing(ports.Tx.Drills, ports.Drills.End, d))
	w.unknown("none goes on", reading(ports.Tx.Drills, ports.Drills.Open, w.server.ID))
	w.equal("it", read2(w, ports.Tx.Drills, ports.Drills.List, w.server.ID, ports.Page{}), []drill.Drill{d})
}

func lastDrillIsFound(w *world) {
	shop, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	last := func(db id.DatabaseID, of drill.Outcome) drill.Drill {
		return read(w, ports.Tx.Drills, ports.Drills.Last, ports.DrillFilter{ServerID: w.server.ID, DatabaseID: db, Outcome: of})
	}
	first := w.drilled(shop, 10, drill.Proven)
	failed := w.drilled(shop, 20, drill.Failed)
	w.drilled(shop, 30, drill.NotRun)
	w.unknown("another database", reading(ports.Tx.Drills, ports.Drills.Last, ports.DrillFilter{DatabaseID: other}))
	third := w.drilled(other, 40, drill.Proven)
	w.addDrill(shop, 50)
	w.equal("of the database", last(shop, ""), failed)
	w.equal("the last that has proven", last(shop, drill.Proven), first)
	w.equal("of the server", last("", ""), third)
	w.unknown("of another server", reading(ports.Tx.Drills, ports.Drills.Last, ports.DrillFilter{ServerID: newID[id.ServerID]()}))
	from := func(minute int) any {
		at := read2(w, ports.Tx.Drills, ports.Drills.ProvenFrom, w.server.ID, minutes(minute))
		if at == nil {
			return nil
		}
		return *at
	}
	w.equal("proven from", from(0), any(minutes(5)))
	w.equal("proven later", from(6), any(minutes(35)))
	w.equal("never proven", from(36), nil)
}

func drillPages(w *world) {
	shop := w.addDatabase("shop").ID
	var all []drill.Drill
	for i := range 5 {
		all = append(all, w.drilled(shop, i/2, drill.Proven))
	}
	position := func(d drill.Drill) ports.Position { return at(d.BegunAt, d.ID) }
	pagesOf(w, all, position, -1, paged(ports.Tx.Drills, ports.Drills.List, w.server.ID))
	pagesOf(w, all, position, -1, paged(ports.Tx.Drills, ports.Drills.List, id.ServerID("")))
	w.equal("of another server", len(read2(w, ports.Tx.Drills, ports.Drills.List, newID[id.ServerID](), ports.Page{})), 0)
}

func drillsAreForgotten(w *world) {
	shop, other := w.addDatabase("shop").ID, w.addDatabase("other").ID
	w.drilled(shop, 1, drill.Proven)
	kept := w.drilled(other, 5, drill.Failed)
	open := w.addDrill(shop, 1)
	w.update(writing2(ports.Tx.Drills, ports.Drills.Forget, w.server.ID, minutes(6)))
	list := func() []drill.Drill { return read2(w, ports.Tx.Drills, ports.Drills.List, w.server.ID, ports.Page{}) }
	w.equal("what is left", list(), []drill.Drill{kept, open})
	readLocked(w, ports.Tx.Drills, ports.Drills.LockPlan, w.server.ID)
	plan := drill.Plan{ServerID: w.server.ID, DatabaseID: shop, DueAt: minutes(9)}
	w.update(writing(ports.Tx.Drills, ports.Drills.SavePlan, plan))
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, shop))
	w.equal("without the database", list(), []drill.Drill{kept})
	plan.DatabaseID = ""
	w.equal("the plan", readLocked(w, ports.Tx.Drills, ports.Drills.LockPlan, w.server.ID), plan)
	w.update(inOrder(writing(ports.Tx.Databases, ports.Databases.Remove, other),
		writing(ports.Tx.Servers, ports.Servers.Remove, w.server.ID)))
}
