package agent

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/ports"
)

// archiveCases are about databases as they were at a moment.
var archiveCases = map[string]func(t *testing.T, s Stand){
	"window of a database":                   windowOfDatabase,
	"window of no database":                  windowOfNothing,
	"moment becomes a clone":                 momentCloned,
	"moment again is the same":               momentAgain,
	"moment with another payload":            momentConflict,
	"moment before the database":             momentBefore,
	"moment of no database":                  momentOfNothing,
	"moment closed on its way":               momentClosed,
	"moment before a restore":                momentBeforeRestore,
	"moment of an isolated database":         momentIsolated,
	"moment takes the place of the database": momentRestored,
	"moment proven by a drill":               momentProven,
	"drill of nothing":                       drillOfNothing,
	"rescue of a table":                      rescueMade,
	"rescue of what was not there":           rescueOfNothing,
	"rescue into a schema that is there":     rescueTwice,
	"rescue closed on its way":               rescueClosed,
	"moments compared":                       momentsCompared,
	"moment found by a query":                momentFound,
}

// Archive is the part of the suite that needs an agent whose server keeps an archive. See Agent.
func Archive(t *testing.T, several int, newStand func(t *testing.T) Stand) {
	for _, name := range sample.OneIn(t, several, slices.Sorted(maps.Keys(archiveCases))) {
		t.Run(name, func(t *testing.T) { insisting(t, newStand(t), archiveCases[name]) })
	}
}

// apart is how far a moment is from what is written before and after it.
const apart = 20 * time.Millisecond

// moment is a moment after all that was written, and before all that is to be.
func moment() time.Time {
	time.Sleep(apart)
	at := time.Now().UTC().Truncate(time.Microsecond)
	time.Sleep(apart)
	return at
}

// windowOf waits until something of a database can be had back.
func windowOf(t *testing.T, s Stand, db id.DatabaseID) recovery.Window {
	t.Helper()
	for ctx := bounded(t); ; time.Sleep(apart) {
		known := must(ports.Ask(ctx, s.Agent, command.RecoveryWindow{DatabaseID: db}))(t)
		if !known.Archived {
			t.Fatal("the server keeps no archive")
		}
		if !known.Window.Empty() && known.Window.From.Before(time.Now()) { // which is in whole seconds
			return known.Window
		}
	}
}

// past is a cloning of a moment: the source has the table "before" then, and "after" later.
func past(t *testing.T, s Stand) *cloning {
	t.Helper()
	c := cloningOf(t, s)
	windowOf(t, s, c.spec.DatabaseID)
	c.dump.At = new(moment())
	did(t, s.Server.Load(c.spec.Name, "CREATE TABLE after (n int);\n"), "a table")
	return c
}

// wantThen checks that a database is as it was at the moment.
func wantThen(t *testing.T, s Stand, name string) {
	t.Helper()
	if !s.Server.HasTable(name, "before") || s.Server.HasTable(name, "after") {
		t.Errorf("%s is not as it was then", name)
	}
}

func windowOfDatabase(t *testing.T, s Stand) {
	began := time.Now()
	db, _ := made(t, s)
	w := windowOf(t, s, db.DatabaseID)
	if w.From.Before(began.Add(-time.Minute)) || w.To.After(time.Now().Add(time.Minute)) || len(w.Gaps) > 0 {
		t.Errorf("it is %+v", w)
	}
	at := moment()
	for ctx := bounded(t); w.To.Before(at); time.Sleep(apart) {
		if ctx.Err() != nil {
			t.Fatalf("%s is never stored: %+v", at, w)
		}
		w = windowOf(t, s, db.DatabaseID)
	}
}

func windowOfNothing(t *testing.T, s Stand) {
	q := command.RecoveryWindow{DatabaseID: newID[id.DatabaseID]()}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonNotFound)
}

func momentCloned(t *testing.T, s Stand) {
	c := past(t, s)
	sessions := c.sessions(t, c.spec.Logins[0])
	c.prepared(t)
	c.wantShut(t)
	c.switched(t)
	wantStands(t, s.Server, c.clone)
	wantThen(t, s, c.clone.Name)
	wantAlive(t, sessions, true)
	if c.wantSource(t); !s.Server.HasTable(c.spec.Name, "after") {
		t.Error("the source has lost what came after")
	}
	wantNoFile(t, s, c.spec.DatabaseID, passingName)
}

// Whoever takes the operation over begins with its first step. The stages come in their order.
func momentAgain(t *testing.T, s Stand) {
	c := past(t, s)
	c.steps()[0](t)
	var stages []string
	over(t, s, c.fence, c.dump, func(r command.BackupReport) (bool, int) {
		stages = append(stages, r.Stage)
		return r.State == command.BackupRunning, r.Progress
	})
	if at := slices.Index(stages, recovery.Replaying); at >= 0 && slices.Contains(stages[at:], recovery.Fetching) {
		t.Errorf("the stages were %v", stages)
	}
	c.fence.Epoch++
	c.prepared(t)
	c.switched(t)
	c.fence.Epoch++
	c.prepared(t)
	wantThen(t, s, c.clone.Name)
}

func momentConflict(t *testing.T, s Stand) {
	c := past(t, s)
	c.steps()[0](t)
	must(s.Agent.Do(bounded(t), c.fence, c.dump))(t)
	other := c.dump
	other.At = new(c.dump.At.Add(time.Microsecond))
	s.refuses(t, c.fence, other, command.ReasonConflict)
	noError(t, ports.Close(bounded(t), s.Agent, c.fence))
}

func momentBefore(t *testing.T, s Stand) {
	c := past(t, s)
	c.dump.At = new(windowOf(t, s, c.spec.DatabaseID).From.Add(-time.Second))
	c.steps()[0](t)
	wantUnmade(t, s, c.fence, c.dump, command.ReasonNotRecoverable)
	noError(t, ports.Close(bounded(t), s.Agent, c.fence))
	wantNothing(t, s.Server, c.clone)
	wantNoFile(t, s, c.spec.DatabaseID, passingName)
}

// wantUnmade checks that the agent makes no file, and says why: at once, or when it has found out.
func wantUnmade(t *testing.T, s Stand, fence ports.Fence, c command.Backup, reason command.Reason) {
	t.Helper()
	for ctx := bounded(t); ; time.Sleep(apart) {
		report, err := ports.Do(ctx, s.Agent, fence, c)
		switch {
		case err != nil:
			wantReason(t, err, reason)
			return
		case report.State != command.BackupRunning:
			if report.State != command.BackupFailed || report.Reason != reason || report.Message == "" {
				t.Errorf("the file: %+v, want a failure for %s", report, reason)
			}
			return
		}
	}
}

// drilled asks until a drill is over.
func drilled(t *testing.T, s Stand, q command.Drill) drill.Found {
	t.Helper()
	for ctx := bounded(t); ; time.Sleep(apart) {
		if r := must(ports.Ask(ctx, s.Agent, q))(t); !r.Running() {
			return r.Found
		}
	}
}

// A drill says what the database was, and of the same moment always the same; asked again, it tells the same.
func momentProven(t *testing.T, s Stand) {
	c := past(t, s)
	q := command.Drill{DatabaseID: c.spec.DatabaseID, ID: newID[id.DrillID](), At: *c.dump.At}
	found := drilled(t, s, q)
	f := found.Facts
	if found.Outcome != drill.Proven || found.Why != "" || f.Database != c.spec.Name || f.ServerVersion == "" ||
		f.ReplayedTo.After(q.At) || f.Backup != nil || len(f.Contents.Digest) != 64 || f.Contents.Bytes == 0 || f.Took.Ms() <= 0 {
		t.Errorf("it has found %+v", found)
	}
	if again := drilled(t, s, q); again.Outcome != drill.Proven || again.Facts.Contents != f.Contents {
		t.Errorf("asked again, it says %+v", again)
	}
	q.ID = newID[id.DrillID]()
	if second := drilled(t, s, q); second.Outcome != drill.Proven || second.Facts.Contents.Digest != f.Contents.Digest {
		t.Errorf("the second one has found %+v", second)
	}
	q.ID, q.At = newID[id.DrillID](), windowOf(t, s, c.spec.DatabaseID).From.Add(-time.Hour)
	if early := drilled(t, s, q); early.Outcome != drill.NotRun || early.Why == "" {
		t.Errorf("before the database: %+v", early)
	}
	wantStands(t, s.Server, c.spec)
	if !s.Server.HasTable(c.spec.Name, "after") {
		t.Error("the database has lost what came after")
	}
}

func drillOfNothing(t *testing.T, s Stand) {
	q := command.Drill{DatabaseID: newID[id.DatabaseID](), ID: newID[id.DrillID](), At: moment()}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonNotFound)
	q.At = time.Time{}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonInvalid)
}

func momentOfNothing(t *testing.T, s Stand) {
	s.refuses(t, newFence(), command.Backup{
		DatabaseID: newID[id.DatabaseID](), Filename: passingName, Passing: true, At: new(moment()),
	}, command.ReasonNotFound)
}

func momentClosed(t *testing.T, s Stand) {
	c := past(t, s)
	databases := s.Server.Databases()
	for _, whole := range []bool{false, true} {
		c.fence = newFence()
		c.steps()[0](t)
		must(s.Agent.Do(bounded(t), c.fence, c.dump))(t)
		if whole {
			c.steps()[1](t)
		}
		for range 2 {
			noError(t, ports.Close(bounded(t), s.Agent, c.fence))
		}
		wantNothing(t, s.Server, c.clone)
		wantNoFile(t, s, c.spec.DatabaseID, passingName)
		r := restorable{stage: c.stage}
		r.wantDatabases(t, databases)
		s.refuses(t, c.fence, c.dump, command.ReasonClosed)
	}
	c.wantSource(t)
}

// A database that was replaced since is had back as it was before.
func momentBeforeRestore(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	windowOf(t, s, r.spec.DatabaseID)
	at := moment()
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	r.discard(t)
	c := cloningAt(r.stage, &at)
	c.prepared(t)
	c.switched(t)
	if !s.Server.HasTable(c.clone.Name, "after") || s.Server.HasTable(r.spec.Name, "after") {
		t.Error("the clone is not as the database was before its restore")
	}
}

func momentIsolated(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	windowOf(t, s, d.spec.DatabaseID)
	at := moment()
	did(t, s.Server.Load(d.spec.Name, "CREATE TABLE after (n int);\n"), "a table")
	d.deleted(t)
	windowOf(t, s, d.spec.DatabaseID)
	c := cloningAt(d.stage, &at)
	c.prepared(t)
	c.switched(t)
	wantThen(t, s, c.clone.Name)
}

// A file of a moment takes the place of its own database, as a backup does.
func momentRestored(t *testing.T, s Stand) {
	c := past(t, s)
	if report := finish(t, s, c.fence, c.dump); report.State != command.BackupDone {
		t.Fatalf("the file: %+v", report)
	}
	r := &restorable{stage: c.stage, fence: c.fence, load: command.Load{
		DatabaseID: c.spec.DatabaseID, Compare: true,
		Source: command.Source{DatabaseID: c.spec.DatabaseID, Filename: passingName, Passing: true},
	}}
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	r.discard(t)
	wantThen(t, s, c.spec.Name)
	c.wantIn(t, c.spec.Logins[0], true)
	wantNoFile(t, s, c.spec.DatabaseID, passingName)
}
