package controlplane_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// The record has the new host, the log says what was done, and the result for how long it was closed.
func TestAMove(t *testing.T) {
	for name, change := range map[string][]func(*moves.Request){"served": nil, "closed": {closed}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane, change...))(t)
			w.work(w.ControlPlane)
			wantMoved(w, operation.Succeeded)
			r := w.reached(w.source()).Record()
			equal(t, "host", r.Host, "two.example.org")
			result := must(operation.Decode[move.Result](w.operation(o.ID).Result))(t)
			equal(t, "host of the result", result.Host, "two.example.org")
			equal(t, "notes", len(result.Notes), 0)
			for _, what := range []audit.Action{audit.MoveRequested, audit.DatabaseMoved, audit.MoveFinished} {
				equal(t, string(what), w.logged(w.source(), what), 1)
			}
			must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t) // and back
			w.work(w.ControlPlane)
			w.wantAt(w.machine.ID)
		})
	}
}

// What does not come along is told.
func TestWhatAMoveLeavesOut(t *testing.T) {
	w := newWorld(t)
	w.movable()
	note := "the setting x of shop was left out: PostgreSQL 16 does not know it"
	w.server.LeaveOut(note)
	o := must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "notes", must(operation.Decode[move.Result](w.operation(o.ID).Result))(t).Notes[0], note)
}

// What is stopped stays so, and can be started where it is then.
func TestAMoveOfAStoppedDatabase(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
	w.work(w.ControlPlane)
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.status(w.source()), database.Stopped)
	equal(t, "the owner logs in", w.server.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Start))(t)
	w.work(w.ControlPlane)
	w.wantAt(w.other().ID)
}

// The copy is begun while the file is still being written, by which the progress counts, and ends with it. A failure of the file
// ends the move, as one of the copy does.
func TestACopyOfAFileThatIsBeingWritten(t *testing.T) {
	for end, release := range map[operation.Status]func(w *world){
		operation.Succeeded: func(w *world) { w.home().HoldDumps(false) },
		operation.Failed:    func(w *world) { w.home().SetStorageFull(true) },
	} {
		t.Run(string(end), func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			w.home().HoldDumps(true)
			must(w.moves(w.ControlPlane))(t)
			for range 10 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			o := w.newest()
			equal(t, "stage", o.Stage, "loading")
			equal(t, "progress", o.Progress, 22)
			equal(t, "bytes", o.BytesTotal > 0, true)
			equal(t, "copies", w.server.Copies(), 1)
			release(w)
			w.work(w.ControlPlane)
			wantMoved(w, end)
		})
	}
}

// What is changed while the database moves comes along: the allowlist, and rows.
func TestChangesDuringAMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.during("Load", func() {
		must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "198.51.100.0/24", ""))(t)
		w.home().Load("shop", "INSERT INTO before VALUES (1);\n")
	})
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "networks", len(w.server.Networks("shop")), 2)
	equal(t, "on the server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

// Where the one agent does not reach the other one, that is found while customers are served, and the move says what to do. An
// agent that is only starting is waited for.
func TestAMoveBetweenServersThatDoNotReachEachOther(t *testing.T) {
	for name, change := range map[string][]func(*moves.Request){"served": nil, "closed": {closed}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			w.server.SetApart(true)
			parted := w.home().Calls("Part")
			must(w.moves(w.ControlPlane, change...))(t)
			w.work(w.ControlPlane)
			wantMoved(w, operation.Failed)
			equal(t, "times that customers were kept out", w.home().Calls("Part")-parted, 0)
			const want = "the agent of two does not reach the agent of one: "
			if text := w.newest().ErrorText; !strings.HasPrefix(text, want) {
				t.Errorf("it says %q, not %q", text, want)
			}
			w.inCall("ReachPeer", 1, func() (f fakeagent.Fault) { w.server.SetApart(false); return f })
			must(w.moves(w.ControlPlane, change...))(t)
			w.work(w.ControlPlane)
			wantMoved(w, operation.Succeeded)
		})
	}
}

func TestMovesThatAreRefused(t *testing.T) {
	to := func(of func(w *world) id.ServerID) func(*world, *moves.Request) {
		return func(w *world, q *moves.Request) { q.To = of(w) }
	}
	for name, c := range map[string]struct {
		prepare func(w *world)
		change  func(*world, *moves.Request)
		field   string
	}{
		"to where it is":     {nil, to(func(w *world) id.ServerID { return w.machine.ID }), "to"},
		"to an unknown one":  {nil, to(func(*world) id.ServerID { return "99999999-9999-4999-8999-999999999999" }), "to"},
		"to a disabled one":  {func(w *world) { w.changesOther(func(s *server.Server) { s.Enabled = false }) }, nil, "to"},
		"without room":       {func(w *world) { w.changesOther(func(s *server.Server) { s.Connections = 1 }) }, nil, "to"},
		"the name is taken":  {(*world).namesake, nil, "to"},
		"it has no identity": {func(w *world) { w.home().Load("shop", "CREATE TABLE bare (n int);\n") }, nil, "closed"},
		"to a deaf one":      {func(w *world) { w.server.SetLogical(false) }, nil, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			if c.prepare != nil {
				c.prepare(w)
			}
			_, err := w.moves(w.ControlPlane, func(q *moves.Request) {
				if c.change != nil {
					c.change(w, q)
				}
			})
			refusedOn(t, name, err, c.field)
			equal(t, "open", len(w.openOnes()), 0)
		})
	}
	w := newWorld(t)
	w.movable()
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	must(w.moves(w.ControlPlane))(t)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.DatabaseStateConflict)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.AgentError)
}

func (w *world) changesOther(change func(*server.Server)) {
	must(w.Operator.ChangeServer(w.ctx, w.other().ID, change))(w.t)
}

// namesake makes another database of the same name at the other server.
func (w *world) namesake() {
	w.t.Helper()
	_, _, other := w.newAccount("other@example.org", account.Pro)
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Enabled = false }))(w.t)
	must(w.Databases.Create(w.ctx, other, request("shop")))(w.t)
}

// A database takes room on both servers while it moves, and neither is removed.
func TestRoomDuringAMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.Capacity = 1 })
	must(w.moves(w.ControlPlane))(t)
	refusedOn(t, "the other server", errOf(w.Operator.RemoveServer(w.ctx, w.other().ID)), "server")
	made := must(w.Databases.Create(w.ctx, w.caller, request("next")))(t)
	equal(t, "another one's server", made.Record.ServerID, w.machine.ID)
	w.during("Serve", func() {
		_, n, err := w.Operator.Server(w.ctx, w.machine.ID)
		ok(t, err)
		equal(t, "moves from it", n.Moving, 1)
	})
	w.work(w.ControlPlane)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

// Whatever goes wrong while customers are kept out, they are let in again where they were, also where the other server does not
// answer any more.
func TestAPartingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(w *world)
		code   fault.Code
	}{
		"altered":         {func(w *world) { w.during("Load", func() { w.alter() }) }, fault.DatabaseStateConflict},
		"not equal":       {func(w *world) { w.server.FailTakes("table public.before") }, fault.DatabaseStateConflict},
		"a reply is lost": {func(w *world) { w.losing("Take", 0) }, fault.AgentError},
		"the target dies": {func(w *world) {
			w.during("Take", func() { w.server.SetUnreachable(true) })
		}, fault.AgentError},
		"the name is taken there": {func(w *world) {
			w.inCall("Take", 0, func() fakeagent.Fault { return fakeagent.Fault{Then: w.namesakeStored} })
		}, fault.AgentError},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane))(t)
			c.breaks(w)
			for range 30 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			equal(t, "the owner logs in", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
			w.server.OnCall(nil)
			w.server.SetUnreachable(false)
			w.server.FailTakes("")
			w.work(w.ControlPlane)
			equal(t, "status", w.operation(o.ID).Status, operation.Failed)
			equal(t, "code", w.operation(o.ID).ErrorCode, c.code)
			w.wantAt(w.machine.ID)
		})
	}
}

// alter changes a table of the database.
func (w *world) alter() { w.home().Load("shop", "CREATE TABLE later (n int PRIMARY KEY);\n") }

// namesakeStored stores a database of the same name at the other server, whose agent has not heard of it.
func (w *world) namesakeStored() {
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Get(ctx, w.source())
		if err != nil {
			return err
		}
		r.ID, r.ServerID = "99999999-9999-4999-8999-999999999999", w.other().ID
		return tx.Databases().Add(ctx, r)
	}))
}

// Customers who cannot be kept out are left alone, and the move tries again, a number of times.
func TestABusyParting(t *testing.T) {
	for busy, want := range map[int]operation.Status{3: operation.Succeeded, 99: operation.Failed} {
		w := newWorld(t)
		w.movable()
		w.home().StayBusy(busy)
		must(w.moves(w.ControlPlane))(t)
		for range 40 {
			must(w.Work.RunNext(w.ctx))(t)
			w.clock.Advance(10 * time.Second)
		}
		wantMoved(w, want)
	}
}

// reachesStage works on the newest operation until it stands at a stage.
func (w *world) reachesStage(s stage.Stage) {
	w.t.Helper()
	for range 30 {
		if move.Machine.Of(w.newest()) == s {
			return
		}
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(time.Second)
	}
	w.t.Fatalf("it stands at %s", w.newest().Stage)
}

// Changes are not followed without end, and a closed move does not keep customers out without end.
func TestAMoveThatTakesTooLong(t *testing.T) {
	t.Run("following", func(t *testing.T) {
		w := newWorld(t)
		w.movable()
		w.server.HoldFollows(true)
		must(w.moves(w.ControlPlane))(t)
		w.reachesStage(move.Following)
		w.clock.Advance(move.MostFollowing + time.Minute)
		w.work(w.ControlPlane)
		wantMoved(w, operation.Failed)
	})
	t.Run("closed", func(t *testing.T) {
		w := newWorld(t)
		w.movable()
		must(w.moves(w.ControlPlane, closed))(t)
		w.reachesStage(move.Loading)
		equal(t, "closed", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), false)
		w.server.SetUnreachable(true)
		for range 100 {
			must(w.Work.RunNext(w.ctx))(t)
			w.clock.Advance(time.Minute)
		}
		equal(t, "open", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
		w.server.SetUnreachable(false)
		w.work(w.ControlPlane)
		wantMoved(w, operation.Failed)
	})
}

// Where the other server does not get the last changes in time, the database is open where it was, with all of them.
func TestAMoveWithoutTheLastChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.movable()
		must(w.moves(w.ControlPlane))(t)
		w.during("Take", func() { w.server.HoldFollows(true) })
		w.work(w.ControlPlane)
		wantMoved(w, operation.Failed)
	})
}

// Where the server that is left is gone after the pivot, the move ends, and says what stayed there.
func TestAMoveWhoseSourceDies(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.moves(w.ControlPlane))(t)
	w.during("Serve", func() { w.home().SetUnreachable(true) })
	for range 80 {
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(time.Minute)
	}
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
	equal(t, "the owner logs in", w.server.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
	notes := strings.Join(must(operation.Decode[move.Result](w.operation(o.ID).Result))(t).Notes, "\n")
	for _, want := range []string{"still has the database", "stays at the server one"} {
		equal(t, want, strings.Contains(notes, want), true)
	}
	equal(t, "damaged", w.backups(w.reached(w.source()))[0].DamagedAt != nil, true)
	_, err := w.Operator.RemoveServer(w.ctx, w.machine.ID)
	refusedOn(t, "its server", err, "server", "1 backup that did not come along")
	must(w.Operator.RemoveServerAndBackups(w.ctx, w.machine.ID))(t)
	equal(t, "kept by", w.backups(w.reached(w.source()))[0].KeptBy, id.ServerID(""))
}

// One backup that does not come holds up none of the others, and the move for no longer than its tries. It stays where it is,
// until it is deleted, as does what no record names; and a move back has it again.
func TestBackupsThatStayBehind(t *testing.T) {
	w := newWorld(t)
	w.movable()
	for range 3 {
		w.clock.Advance(time.Minute)
		must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
		w.work(w.ControlPlane)
	}
	all := w.backups(w.reached(w.source()))
	unknown, stays, doomed := all[0].Filename, all[1].Filename, all[2].Filename
	w.inStore(func(ctx context.Context, tx ports.Tx) error { return tx.Backups().Remove(ctx, w.source(), unknown) })
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "AdoptBackup" && (c.Filename == stays || c.Filename == doomed) {
			f.Before = ports.ErrAgentUnreachable
		}
		return f
	})
	o := must(w.moves(w.ControlPlane))(t)
	for range 60 {
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(time.Minute)
	}
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
	equal(t, "files that came along", w.server.Files(), 1)
	equal(t, "files that stay", w.home().Files(), 3)
	equal(t, "notes", len(must(operation.Decode[move.Result](w.operation(o.ID).Result))(t).Notes), 3)
	kept := w.backups(w.reached(w.source()))[0]
	equal(t, "kept by", kept.KeptBy, w.machine.ID)
	equal(t, "damaged", kept.DamagedAt != nil, true)
	ok(t, w.Backups.Delete(w.ctx, w.reached(w.source()), doomed))
	equal(t, "files without the one that is deleted", w.home().Files(), 2)
	w.server.OnCall(nil)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t)
	w.work(w.ControlPlane)
	equal(t, "kept by nobody", w.backups(w.reached(w.source()))[0].KeptBy, id.ServerID(""))
	equal(t, "files where it is", w.home().Files(), 3)
	equal(t, "files left", w.server.Files(), 0)
}

// An order ends a move whose backups do not come along: they stay where they are, and the records say so.
func TestAMoveThatIsEndedWithoutItsBackups(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.moves(w.ControlPlane))(t)
	w.failing("AdoptBackup", 0, ports.ErrAgentUnreachable)
	w.reachesStage(move.Settling)
	w.clock.Advance(time.Minute)
	equal(t, "status", must(w.Operator.FailOperation(w.ctx, o.ID, anOrder))(t).Status, operation.Succeeded)
	kept := w.backups(w.reached(w.source()))[0]
	equal(t, "kept by", kept.KeptBy, w.machine.ID)
	equal(t, "damaged", kept.DamagedAt != nil, true)
	equal(t, "files where it was", w.home().Files(), 1)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t)
	w.work(w.ControlPlane)
	w.wantAt(w.machine.ID)
	equal(t, "kept by, after a move back", w.backups(w.reached(w.source()))[0].KeptBy, id.ServerID(""))
}

// Backups that stay where a database was are known there, and go with the database; a server that does not answer holds its purge
// up for a while only.
func TestThePurgeOfADatabaseWhoseBackupsStayBehind(t *testing.T) {
	for name, away := range map[string]bool{"there": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane))(t)
			w.failing("AdoptBackup", 0, ports.ErrAgentUnreachable)
			w.reachesStage(move.Settling)
			w.clock.Advance(time.Minute)
			must(w.Operator.FailOperation(w.ctx, o.ID, anOrder))(t)
			equal(t, "files that stay", w.home().Files(), 1)
			for _, d := range must(w.Operator.Examine(w.ctx, w.machine, checkups.Options{Patience: brief.Patience}))(t) {
				t.Errorf("the doctor says %s of %s", d.Code, d.Subject)
			}
			db := w.source()
			ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
			ok(t, w.Operator.Enroll(w.ctx, db, "delete"))
			w.deleted(db)
			w.home().SetUnreachable(away)
			w.clock.Advance(60 * 24 * time.Hour)
			for range 40 {
				_ = w.Rounds.Once(w.ctx)
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Minute)
			}
			equal(t, "databases", len(w.server.Databases()), 0)
			_, err := w.Operator.DatabaseDetails(w.ctx, db)
			equal(t, "is purged", err != nil, true)
			equal(t, "files", w.home().Files() > 0, away)
		})
	}
}

// The server that a database comes to is served again and again after the pivot.
func TestATargetThatDiesAtThePivot(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	w.during("Serve", func() { w.server.SetUnreachable(true) })
	w.tryForAnHour()
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	wantMoved(w, operation.Succeeded)
}

// Metadata of the middle of a move that has ended since: the agents say how.
func TestMetadataOfTheMiddleOfAMove(t *testing.T) {
	for name, c := range map[string]struct {
		since func(w *world)
		want  operation.Status
	}{
		"it succeeded": {func(*world) {}, operation.Succeeded},
		"it failed":    {func(w *world) { w.server.FailTakes("a table") }, operation.Failed},
	} {
		for _, at := range []string{"Load", "Follow", "Take"} {
			t.Run(name+", "+at, func(t *testing.T) {
				w := newWorld(t)
				w.movable()
				must(w.moves(w.ControlPlane))(t)
				var restore func()
				w.inCall(at, 0, func() (f fakeagent.Fault) {
					restore = w.store.Backup()
					return f
				})
				c.since(w)
				w.work(w.ControlPlane)
				equal(t, "then", w.newest().Status, c.want)
				restore()
				w.server.FailTakes("")
				for range 100 { // a lease is refused until it is newer than those that the agents know
					must(w.Work.RunNext(w.ctx))(t)
					w.clock.Advance(time.Minute)
				}
				equal(t, "now", w.newest().Status, c.want)
				on := w.machine.ID
				if c.want == operation.Succeeded {
					on = w.other().ID
				}
				w.wantAt(on)
			})
		}
	}
}

// An operator ends a move that goes no further: until the pivot, the database stays where it was.
func TestTheWayOutOfAMove(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		gone bool
		want string
	}{
		"there": {"Load", false, "failed active"}, "gone": {"Load", true, "failed active"},
		"there, after the pivot": {"Serve", false, "failed active"},
		"gone, after the pivot":  {"Serve", true, "failed active"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane))(t)
			w.refusing(c.at, command.ReasonUnavailable)
			for range 30 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			w.server.OnCall(nil)
			order := anOrder
			if gone := w.fleet.Server(w.operation(o.ID).ServerID); c.gone {
				gone.SetUnreachable(true)
				gone.Shows(server.Survey{Agent: server.Reach{Trouble: server.Refused}})
				must(w.Operator.ChangeServer(w.ctx, w.operation(o.ID).ServerID, func(s *server.Server) { s.Enabled = false }))(t)
				w.clock.Advance(time.Hour)
				order.ServerGone = true
			}
			w.clock.Advance(time.Minute)
			ended := must(w.Operator.FailOperation(w.ctx, o.ID, order))(t)
			equal(t, "ended", w.endOf(ended), c.want)
			equal(t, "open", len(w.openOnes()), 0)
			equal(t, "the owner logs in", w.comesTo(w.home()), true)
			equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
		})
	}
}

// Metadata of before a move name the server that has not got the database any more: the doctor says where it stands. While one
// moves, nothing is found.
func TestTheDoctorOfDatabasesThatMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	other := w.other()
	examined := func(s server.Server) (codes []doctor.Code) {
		for _, d := range must(w.Operator.Examine(w.ctx, s, brief))(t) {
			codes = append(codes, d.Code)
		}
		return codes
	}
	w.clock.Advance(time.Minute)
	restore := w.store.Backup()
	must(w.moves(w.ControlPlane))(t)
	w.during("Follow", func() {
		for _, s := range []server.Server{w.machine, other} {
			if found := examined(s); len(found) > 0 {
				t.Errorf("%s, while it moves: %v", s.Name, found)
			}
		}
	})
	w.work(w.ControlPlane)
	if found := slices.Concat(examined(w.machine), examined(other)); len(found) > 0 {
		t.Errorf("after the move: %v", found)
	}
	restore()
	if found := examined(w.machine); !slices.Contains(found, doctor.DatabaseMissing) {
		t.Errorf("where it was: %v", found)
	}
	if found := examined(other); !slices.Contains(found, doctor.DatabaseElsewhere) {
		t.Errorf("where it is: %v", found)
	}
}
