package agent

import (
	"reflect"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// cloneCases are about a database that one operation makes as another one is.
var cloneCases = map[string]func(t *testing.T, s Stand){
	"clone becomes what its source is":     cloneMade,
	"clone again is the same":              cloneAgain,
	"clone from a backup leaves that":      cloneFromBackup,
	"clone closed after each of its steps": cloneClosed,
	"clone is not opened without its data": cloneNotOpened,
	"clone of a closed database only":      cloneOfOpen,
}

// cloning is a stage with a table "before", which an operation clones.
type cloning struct {
	*stage
	fence ports.Fence
	clone command.EnsureDatabase // closed
	dump  command.Backup
	load  command.Load
}

const passingName = "20261121_065349.sql.gz"

func cloningOf(t *testing.T, s Stand) *cloning {
	t.Helper()
	g := admitted(t, s)
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE before (n int);\n"), "a table")
	return cloningAt(g, nil)
}

// cloningAt clones what a stage's database held at a moment; nil: what it holds.
func cloningAt(g *stage, at *time.Time) *cloning {
	c := &cloning{
		stage: g, fence: newFence(), clone: newSpec(g.spec.RoleModel),
		dump: command.Backup{DatabaseID: g.spec.DatabaseID, Filename: passingName, Passing: true, At: at},
	}
	c.clone.Closed = true
	c.load = command.Load{
		DatabaseID: c.clone.DatabaseID, Compare: true, Names: clone.Names(recordOf(g.spec), recordOf(c.clone)),
		Source: command.Source{DatabaseID: g.spec.DatabaseID, Filename: passingName, Passing: true},
	}
	return c
}

func recordOf(c command.EnsureDatabase) database.Record {
	return database.Record{ID: c.DatabaseID, Name: c.Name, RoleModel: c.RoleModel}
}

// steps carry the clone out up to its switch.
func (c *cloning) steps() []func(t *testing.T) {
	return []func(t *testing.T){
		func(t *testing.T) { noError(t, ports.Tell(bounded(t), c.Agent, c.fence, c.clone)) },
		func(t *testing.T) {
			if report := finish(t, c.Stand, c.fence, c.dump); report.State != command.BackupDone {
				t.Fatalf("the dump: %+v", report)
			}
		},
		func(t *testing.T) { c.ready(t) },
	}
}

func (c *cloning) ready(t *testing.T) {
	t.Helper()
	if report := loaded(t, c.Stand, c.fence, c.load); report.State != command.LoadReady {
		t.Fatalf("the copy: %+v", report)
	}
}

func (c *cloning) prepared(t *testing.T) {
	t.Helper()
	for _, step := range c.steps() {
		step(t)
	}
}

// switched carries out the rest: the switch, what follows it, and the proof of a log-in.
func (c *cloning) switched(t *testing.T) command.Switched {
	t.Helper()
	done := must(ports.Do(bounded(t), c.Agent, c.fence, c.switching()))(t)
	noError(t, ports.Tell(bounded(t), c.Agent, c.fence, command.Discard{DatabaseID: c.clone.DatabaseID}))
	noError(t, ports.Tell(bounded(t), c.Agent, c.fence, c.proof()))
	return done
}

func (c *cloning) switching() command.Switch {
	return command.Switch{DatabaseID: c.clone.DatabaseID, Open: true}
}

// proof is the command that proves the owner's log-in, once the switch has opened the database.
func (c *cloning) proof() command.EnsureDatabase {
	open := c.clone
	open.Closed = false
	return open
}

// wantShut checks that nobody gets into the clone by any way.
func (c *cloning) wantShut(t *testing.T) {
	t.Helper()
	g := *c.stage
	g.spec = c.clone
	for _, l := range c.clone.Logins {
		g.wantIn(t, l, false)
	}
}

// wantPassing checks whether there is a file that is the clone's only.
func (c *cloning) wantPassing(t *testing.T, want bool) {
	t.Helper()
	if found := filesBelow(t, c.Stand, "passing/"+string(c.spec.DatabaseID)+"/"); len(found) > 0 != want {
		t.Errorf("of the clone there are %v", found)
	}
}

func (c *cloning) wantSource(t *testing.T) {
	t.Helper()
	c.wantIn(t, c.spec.Logins[0], true)
	if !c.Server.HasTable(c.spec.Name, "before") {
		t.Error("the source has lost its table")
	}
}

func cloneMade(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	sessions := c.sessions(t, c.spec.Logins[0])
	databases := s.Server.Databases()
	for _, step := range c.steps() {
		step(t)
		c.wantShut(t)
	}
	c.wantPassing(t, true)
	wantNoFile(t, s, c.spec.DatabaseID, passingName)
	did(t, s.Server.Load(c.spec.Name, "CREATE TABLE after (n int);\n"), "a table")
	c.switched(t)
	wantStands(t, s.Server, c.clone)
	if !s.Server.HasTable(c.clone.Name, "before") || s.Server.HasTable(c.clone.Name, "after") {
		t.Error("the clone is not as the source was")
	}
	wantAlive(t, sessions, true)
	c.wantSource(t)
	c.wantPassing(t, false)
	r := restorable{stage: c.stage}
	r.wantDatabases(t, databases)
	for range 2 {
		wantReason(t, ports.Close(bounded(t), s.Agent, c.fence), command.ReasonCompleted)
	}
	wantStands(t, s.Server, c.clone)
}

// Whoever takes the operation over begins with its first step, wherever it was. Afterwards it is a database like others.
func cloneAgain(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	c.prepared(t)
	c.fence.Epoch++
	c.prepared(t)
	first := c.switched(t)
	did(t, s.Server.Load(c.clone.Name, "CREATE TABLE later (n int);\n"), "a table")
	c.fence.Epoch++
	c.prepared(t)
	if again := c.switched(t); !reflect.DeepEqual(again, first) {
		t.Errorf("first %+v, then %+v", first, again)
	}
	wantStands(t, s.Server, c.clone)
	for n, open := range []bool{false, true} {
		access := command.SetAccess{DatabaseID: c.clone.DatabaseID, Generation: int64(2 + n), Open: open, Disconnect: !open}
		noError(t, ports.Tell(bounded(t), s.Agent, newFence(), access))
		wantLogIn(t, s.Server, c.proof(), open)
	}
	if !s.Server.HasTable(c.clone.Name, "later") {
		t.Error("what was written after the switch is gone")
	}
	c.wantPassing(t, false)
}

func cloneFromBackup(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	spec := command.Backup{DatabaseID: c.spec.DatabaseID, Filename: backupName}
	report := finish(t, s, newFence(), spec)
	c.load.Source = command.Source{DatabaseID: spec.DatabaseID, Filename: backupName, ManifestSHA256: report.ManifestSHA256}
	c.setAccess(t, 7, false) // a stopped one can be cloned from a backup
	noError(t, ports.Tell(bounded(t), s.Agent, c.fence, c.clone))
	c.ready(t)
	c.switched(t)
	wantStands(t, s.Server, c.clone)
	c.wantIn(t, c.spec.Logins[0], false)
	wantFile(t, s, spec, report)
}

// A clone that is closed before its switch, while a job runs too, leaves nothing: no database, no login, no copy and no file.
func cloneClosed(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	databases := s.Server.Databases()
	begun := map[int]command.Command{1: c.dump, 2: c.load} // after so many steps
	for n := range 2 * (len(c.steps()) + 1) {
		c.fence = newFence()
		for _, step := range c.steps()[:n/2] {
			step(t)
		}
		if job := begun[n/2]; job != nil && n%2 == 1 {
			must(s.Agent.Do(bounded(t), c.fence, job))(t)
		}
		for range 2 {
			noError(t, ports.Close(bounded(t), s.Agent, c.fence))
		}
		wantNothing(t, s.Server, c.clone)
		c.wantPassing(t, false)
		r := restorable{stage: c.stage}
		r.wantDatabases(t, databases)
		for _, told := range []command.Command{c.clone, c.dump, c.load, c.switching(), c.proof()} {
			s.refuses(t, c.fence, told, command.ReasonClosed)
		}
		c.wantSource(t)
	}
}

// Neither the proof, before the switch, nor a switch without a copy opens the empty database, nor who starts databases.
func cloneNotOpened(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	c.steps()[0](t)
	wantRefused(t, ports.Tell(bounded(t), s.Agent, c.fence, c.proof()), c.clone.Logins[0].Password)
	s.refuses(t, c.fence, c.switching(), command.ReasonNotFound)
	start := command.SetAccess{DatabaseID: c.clone.DatabaseID, Generation: 2, Open: true}
	s.refuses(t, newFence(), start, command.ReasonFailed)
	c.wantShut(t)
	noError(t, ports.Close(bounded(t), s.Agent, c.fence))
	wantNothing(t, s.Server, c.clone)
}

// A database that stands, or that another operation makes, is not taken for one that is yet to be filled.
func cloneOfOpen(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	stands, fence := made(t, s)
	stands.Closed = true
	s.refuses(t, fence, stands, command.ReasonConflict)
	s.refuses(t, newFence(), stands, command.ReasonConflict)
	wantLogIn(t, s.Server, stands, true)
	c.steps()[0](t)
	s.refuses(t, newFence(), c.clone, command.ReasonConflict)
	c.wantShut(t)
	noError(t, ports.Close(bounded(t), s.Agent, c.fence))
}
