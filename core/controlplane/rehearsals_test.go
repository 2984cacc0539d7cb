package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/server"
)

func (w *world) rehearses(cp *controlplane.ControlPlane) (operation.Operation, error) {
	w.t.Helper()
	return cp.Operator.RehearseDatabase(w.ctx, w.source(), w.other().ID, "ada")
}

// rehearsed are the last rehearsals of the database, by what it is now.
func (w *world) rehearsed() []rehearsals.Shown {
	w.t.Helper()
	is := must(w.Operator.Movable(w.ctx, w.source()))(w.t)
	return must(w.Operator.Rehearsals(w.ctx, w.source(), is.Movable))(w.t)
}

var theRehearsal = flow{
	name: "rehearsal", kind: rehearsals.Kind, during: "Load",
	prepare: (*world).movable,
	begin:   func(w *world, cp *controlplane.ControlPlane) { _, _ = w.rehearses(cp) },
	fails:   func(w *world) { w.refusing("Load", command.ReasonFailed) },
	ended: func(w *world, end operation.Status) {
		w.wantAt(w.machine.ID)
		kept := 0
		if end == operation.Succeeded {
			kept = 1
		}
		equal(w.t, "status", w.newest().Status, end)
		equal(w.t, "kept", len(w.rehearsed()), kept)
		equal(w.t, "in the log", w.logged(w.source(), audit.RehearsalRequested), 1)
	},
}

// A rehearsal that has found nothing permits the move for seven days, as long as the schema stays the same. A row is no change.
func TestARehearsal(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
	o := must(w.rehearses(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	result := must(operation.Decode[rehearsal.Result](w.operation(o.ID).Result))(t)
	equal(t, "version", result.PostgresVersion, 18)
	equal(t, "breaks", len(result.Breaks), 0)
	equal(t, "in the log", w.logged(w.source(), audit.RehearsalFinished), 1)
	equal(t, "event", w.events()[len(w.events())-1], "rehearsal.succeeded")
	w.home().Load("shop", "INSERT INTO before VALUES (1);\n")
	last := w.rehearsed()
	equal(t, "for", last[0].PostgresVersion, 18)
	equal(t, "lacks", last[0].Lacks, "")
	w.clock.Advance(rehearsal.Valid + time.Second)
	equal(t, "lacks after a week", w.rehearsed()[0].Lacks != "", true)

	w.server.BreakRehearsals(rehearsal.Break{Kind: rehearsal.Extension, Object: "postgis", What: "not there", Remedy: "drop it"})
	o = must(w.rehearses(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
	last = w.rehearsed()
	equal(t, "kept", len(last), 1)
	equal(t, "breaks", len(must(last[0].Found())(t)), 1)
	equal(t, "lacks what breaks", last[0].Lacks != "", true)

	w.server.BreakRehearsals()
	w.server.LeaveOut("the setting x of shop was left out: PostgreSQL 18 does not know it")
	o = must(w.rehearses(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "lacks, mended", w.rehearsed()[0].Lacks, "")
	equal(t, "notes", len(must(operation.Decode[rehearsal.Result](w.operation(o.ID).Result))(t).Notes), 1)
	w.home().Load("shop", "CREATE TABLE after (n int PRIMARY KEY);\n")
	equal(t, "lacks after a change", w.rehearsed()[0].Lacks != "", true)
	w.wantAt(w.machine.ID)
}

func TestRehearsalsThatAreRefused(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"to a disabled one": func(w *world) { w.changesOther(func(s *server.Server) { s.Enabled = false }) },
		"without room":      func(w *world) { w.changesOther(func(s *server.Server) { s.Connections = 1 }) },
		"the name is taken": (*world).namesake,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			prepare(w)
			refusedOn(t, name, errOf(w.rehearses(w.ControlPlane)), "to")
			equal(t, "open", len(w.openOnes()), 0)
		})
	}
	w := newWorld(t)
	w.movable()
	to := func(s id.ServerID) error { return errOf(w.Operator.RehearseDatabase(w.ctx, w.source(), s, "ada")) }
	refusedOn(t, "to where it is", to(w.machine.ID), "to")
	refusedOn(t, "to an unknown one", to("99999999-9999-4999-8999-999999999999"), "to")
	must(w.rehearses(w.ControlPlane))(t)
	refused(t, errOf(w.rehearses(w.ControlPlane)), fault.DatabaseStateConflict)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.rehearses(w.ControlPlane)), fault.AgentError)
}

// What is changed of the schema on the way was not rehearsed.
func TestASchemaThatChangesDuringARehearsal(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.rehearses(w.ControlPlane))(t)
	w.during("EnsureDatabase", func() { w.home().Load("shop", "CREATE TABLE after (n int PRIMARY KEY);\n") })
	w.work(w.ControlPlane)
	equal(t, "code", w.operation(o.ID).ErrorCode, fault.DatabaseStateConflict)
	equal(t, "kept", len(w.rehearsed()), 0)
	w.wantAt(w.machine.ID)
}

// The copy goes once its server answers again, and the rehearsal has not counted for longer than it may take.
func TestARehearsalWhoseTargetIsAway(t *testing.T) {
	for _, at := range []string{"Load", "Close"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.rehearses(w.ControlPlane))(t)
			w.refusing(at, command.ReasonUnavailable)
			for range 100 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(2 * time.Minute)
			}
			equal(t, "ended", w.operation(o.ID).Status.Final(), at == "Load")
			w.server.OnCall(nil)
			w.work(w.ControlPlane)
			end := map[string]operation.Status{"Load": operation.Failed, "Close": operation.Succeeded}[at]
			equal(t, "status", w.operation(o.ID).Status, end)
			w.wantAt(w.machine.ID)
		})
	}
}

// An operator need not wait for a server that is gone. What that has of the copy is found once it is back.
func TestARehearsalThatIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.rehearses(w.ControlPlane))(t)
	w.during("Load", func() { w.server.SetUnreachable(true) })
	for range 10 {
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(time.Second)
	}
	w.clock.Advance(time.Minute)
	ended := must(w.Operator.FailOperation(w.ctx, o.ID, anOrder))(t)
	equal(t, "status", ended.Status, operation.Failed)
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	w.work(w.ControlPlane)
	w.server.SetUnreachable(false)
	found := must(w.Operator.Examine(w.ctx, w.other(), brief))(t)
	if !slices.ContainsFunc(found, func(d checkups.Diagnosis) bool { return d.Code == doctor.DatabaseElsewhere }) {
		t.Errorf("found %+v", found)
	}
}

// A drain to a newer PostgreSQL says which databases are to be rehearsed first, and does nothing until they are.
func TestADrainToANewerVersion(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
	there := func(d *move.Drain) { d.To = w.other().ID }
	plan, err := w.drains(there)
	refusedOn(t, "unrehearsed", err, "partly")
	if len(plan) != 1 || !strings.Contains(plan[0].Why, "pgherd admin database rehearse --database shop --to two") {
		t.Errorf("planned is %+v", plan)
	}
	must(w.rehearses(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	plan, err = w.drains(there)
	if err != nil || plan[0].Why != "" || plan[0].To.ID != w.other().ID {
		t.Errorf("planned is %+v, %v", plan, err)
	}
}
