package agent

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var restoreCases = map[string]func(t *testing.T, s Stand){
	"restore brings a backup back":            restoreSwitches,
	"restore again is the same":               restoreAgain,
	"restore with another payload":            restoreConflict,
	"restore of no file":                      restoreOfNothing,
	"restore with another manifest":           restoreOtherManifest,
	"restore switches only what is ready":     restoreUnready,
	"restore closed before its switch":        restoreClosed,
	"restore complete cannot be closed":       restoreComplete,
	"restore of a stopped database":           restoreStopped,
	"restore of a database that stays closed": restoreConfiguredClosed,
	"restore keeps logins as they are":        restoreKeepsLogins,
	"restore keeps settings":                  restoreKeepsSettings,
	"restore by a worker without its lease":   restoreFenced,
}

// restorable is a stage with one table, "before", in a backup, and another one, "after", that is not in it.
type restorable struct {
	*stage
	fence ports.Fence
	load  command.Load
}

func restorableOf(t *testing.T, s Stand) *restorable {
	t.Helper()
	g := admitted(t, s)
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE before (n int);\n"), "a table")
	spec := command.Backup{DatabaseID: g.spec.DatabaseID, Filename: backupName}
	report := finish(t, s, newFence(), spec)
	if report.State != command.BackupDone || report.ManifestSHA256 == "" {
		t.Fatalf("the backup: %+v", report)
	}
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE after (n int);\n"), "a table")
	return &restorable{stage: g, fence: newFence(), load: command.Load{
		DatabaseID: spec.DatabaseID, Compare: true, Source: command.Source{
			DatabaseID: spec.DatabaseID, Filename: spec.Filename, ManifestSHA256: report.ManifestSHA256,
		},
	}}
}

// loaded asks until the copy is ready or has failed.
func (r *restorable) loaded(t *testing.T) command.LoadReport {
	t.Helper()
	return loaded(t, r.Stand, r.fence, r.load)
}

func loaded(t *testing.T, s Stand, fence ports.Fence, c command.Load) command.LoadReport {
	t.Helper()
	return over(t, s, fence, c, func(r command.LoadReport) (bool, int) { return r.State == command.LoadRunning, r.Progress })
}

// ready is loaded for a copy that has to be ready.
func (r *restorable) ready(t *testing.T) {
	t.Helper()
	if report := r.loaded(t); report.State != command.LoadReady || report.SizeBytes == 0 || len(report.Notes) > 0 {
		t.Fatalf("the copy: %+v", report)
	}
}

func (r *restorable) switching(open bool) command.Switch {
	return command.Switch{DatabaseID: r.spec.DatabaseID, Open: open}
}

func (r *restorable) discard(t *testing.T) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), r.Agent, r.fence, command.Discard{DatabaseID: r.spec.DatabaseID}))
}

// wantRestored checks which of the two tables are there.
func (r *restorable) wantRestored(t *testing.T, want bool) {
	t.Helper()
	if !r.Server.HasTable(r.spec.Name, "before") || r.Server.HasTable(r.spec.Name, "after") == want {
		t.Errorf("before: %t, after: %t", r.Server.HasTable(r.spec.Name, "before"), r.Server.HasTable(r.spec.Name, "after"))
	}
}

// wantDatabases checks that no copy stands: the databases of the server are soon those of before.
func (r *restorable) wantDatabases(t *testing.T, want []string) {
	t.Helper()
	eventually(t, func() bool { return reflect.DeepEqual(of(r.Server.Databases(), r.spec), of(want, r.spec)) },
		"databases %v, before %v", r.Server.Databases(), want)
}

// of leaves out what other tests make on the same server at the same time.
func of(databases []string, spec command.EnsureDatabase) (list []string) {
	for _, name := range databases {
		if name == spec.Name || strings.Contains(name, "restore") || strings.Contains(name, "replaced") {
			list = append(list, name)
		}
	}
	return list
}

func restoreSwitches(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	did(t, s.Server.Load(r.spec.Name, "INSERT INTO after VALUES (1);\n"), "a row")
	databases, owner := s.Server.Databases(), r.spec.Logins[0]
	before := must(ports.Ask(bounded(t), s.Agent, command.Settings{DatabaseID: r.spec.DatabaseID}))(t)
	sessions := r.sessions(t, owner)
	r.ready(t)
	want := restore.Change{Tables: restore.Count{Before: 2, After: 1}, Rows: restore.Count{Before: 1}}
	if got := r.loaded(t).Change; got == nil || *got != want {
		t.Errorf("it would change %+v, want %+v", got, want)
	}
	wantAlive(t, sessions, true)
	r.wantRestored(t, false)
	switched := must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	if switched.DatabaseOID == before.DatabaseOID || switched.DatabaseOID == 0 || switched.SizeBytes == 0 {
		t.Errorf("database %d has become %+v", before.DatabaseOID, switched)
	}
	wantAlive(t, sessions, false)
	r.wantRestored(t, true)
	r.wantIn(t, owner, true)
	r.wantIn(t, r.login, true)
	size := must(ports.Ask(bounded(t), s.Agent, command.DatabaseSize{DatabaseID: r.spec.DatabaseID}))(t)
	if size.Bytes == 0 {
		t.Error("the database has no size")
	}
	r.discard(t)
	r.wantDatabases(t, databases)
	r.wantRestored(t, true)
}

// Each command again has the same result, under a newer lease too; nothing is switched twice.
func restoreAgain(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	first := r.loaded(t)
	r.fence.Epoch++
	if again := r.loaded(t); !reflect.DeepEqual(again, first) {
		t.Errorf("first %+v, then %+v", first, again)
	}
	switched := must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	did(t, s.Server.Load(r.spec.Name, "CREATE TABLE later (n int);\n"), "a table")
	r.fence.Epoch++
	if again := must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t); again.DatabaseOID != switched.DatabaseOID {
		t.Errorf("first %+v, then %+v", switched, again)
	}
	if !s.Server.HasTable(r.spec.Name, "later") {
		t.Error("what was written after the switch is gone")
	}
	if again := r.loaded(t); !reflect.DeepEqual(again, first) {
		t.Errorf("first %+v, after the switch %+v", first, again)
	}
	r.discard(t)
	r.discard(t)
}

func restoreConflict(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.ready(t)
	other := r.load
	other.Source.Filename = "20261121_065348.sql.gz"
	s.refuses(t, r.fence, other, command.ReasonConflict)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	s.refuses(t, r.fence, r.switching(false), command.ReasonConflict)
	r.wantIn(t, r.spec.Logins[0], true)
	r.discard(t)
}

func restoreOfNothing(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.load.Source.Filename = "20261121_065348.sql.gz"
	s.refuses(t, newFence(), r.load, command.ReasonNotFound)
	r.load.Source.Filename, r.load.DatabaseID = backupName, newID[id.DatabaseID]()
	s.refuses(t, newFence(), r.load, command.ReasonNotFound)
	switching := command.Switch{DatabaseID: r.load.DatabaseID, Open: true}
	s.refuses(t, newFence(), switching, command.ReasonNotFound)
	r.wantRestored(t, false)
}

// A backup whose manifest is not the recorded one is not restored from, and that is the backup's fault. Where none is recorded,
// as of an old backup, any manifest of the file will do.
func restoreOtherManifest(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	databases := s.Server.Databases()
	for sum, want := range map[string]command.LoadState{strings.Repeat("0", 64): command.LoadFailed, "": command.LoadReady} {
		r.fence, r.load.Source.ManifestSHA256 = newFence(), sum
		report := r.loaded(t)
		if report.State != want || want == command.LoadFailed && (report.Reason != command.ReasonInvalid || report.Message == "") {
			t.Errorf("with the manifest %q: %+v", sum, report)
		}
		noError(t, ports.Close(bounded(t), s.Agent, r.fence))
		r.wantDatabases(t, databases)
	}
	r.wantRestored(t, false)
}

// A copy that is not ready, or another operation's, is not switched to; nor is there anything to discard.
func restoreUnready(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	s.refuses(t, r.fence, r.switching(true), command.ReasonNotFound)
	discard := command.Discard{DatabaseID: r.spec.DatabaseID}
	s.refuses(t, r.fence, discard, command.ReasonNotFound)
	r.ready(t)
	s.refuses(t, newFence(), r.switching(true), command.ReasonNotFound)
	s.refuses(t, r.fence, discard, command.ReasonNotFound)
	r.wantRestored(t, false)
	r.wantIn(t, r.spec.Logins[0], true)
	noError(t, ports.Close(bounded(t), s.Agent, r.fence))
}

// A restore that is closed while it loads, or once its copy is ready, leaves no copy and the live database as it is.
func restoreClosed(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	databases := s.Server.Databases()
	session := logIn(t, s.Server, r.spec)
	for _, ready := range []bool{false, true} {
		r.fence = newFence()
		if ready {
			r.ready(t)
		} else {
			must(ports.Do(bounded(t), s.Agent, r.fence, r.load))(t)
		}
		for range 2 {
			noError(t, ports.Close(bounded(t), s.Agent, r.fence))
		}
		s.refuses(t, r.fence, r.load, command.ReasonClosed)
		s.refuses(t, r.fence, r.switching(true), command.ReasonClosed)
		r.wantDatabases(t, databases)
	}
	if !session.Alive() {
		t.Error("a session was ended")
	}
	r.wantRestored(t, false)
	r.wantIn(t, r.spec.Logins[0], true)
}

func restoreComplete(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	wantReason(t, ports.Close(bounded(t), s.Agent, r.fence), command.ReasonCompleted)
	r.discard(t)
	wantReason(t, ports.Close(bounded(t), s.Agent, r.fence), command.ReasonCompleted)
	r.wantRestored(t, true)
	r.wantIn(t, r.spec.Logins[0], true)
}

// A stopped database stays stopped, and is started as ever.
func restoreStopped(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.setAccess(t, 7, false)
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(false)))(t)
	r.wantIn(t, r.spec.Logins[0], false)
	r.wantIn(t, r.login, false)
	r.setAccess(t, 8, true)
	r.wantIn(t, r.spec.Logins[0], true)
	r.wantRestored(t, true)
	r.discard(t)
}

// What Configure has closed is not opened by a switch.
func restoreConfiguredClosed(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.configure(t, command.Configure{Generation: 1, Closed: true})
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	r.wantIn(t, r.spec.Logins[0], false)
	r.configure(t, command.Configure{Generation: 2})
	r.wantIn(t, r.spec.Logins[0], true)
	r.discard(t)
}

// Passwords are those of now, and a role that was revoked or removed since the backup does not come back.
func restoreKeepsLogins(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	owner := r.spec.Logins[0]
	rotation, fresh := r.rotationOf(owner)
	r.change(t, rotation)
	r.change(t, r.shutting(role.Revocation))
	r.ready(t)
	must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	r.wantIn(t, fresh, true)
	r.wantIn(t, owner, false)
	r.wantIn(t, r.login, false)
	noError(t, refusal(ports.Do(bounded(t), s.Agent, changeFence(), command.RemoveRole{
		DatabaseID: r.spec.DatabaseID, Username: r.login.Username, Generation: r.generation(),
	})))
	r.discard(t)
}

// The settings are those of now, and bound to the new database; the next ones are taken as ever.
func restoreKeepsSettings(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	r.configure(t, command.Configure{Generation: 3, Timeouts: standardTimeouts()})
	r.ready(t)
	switched := must(ports.Do(bounded(t), s.Agent, r.fence, r.switching(true)))(t)
	in := command.SettingsInForce{
		DatabaseOID: switched.DatabaseOID, Generation: 3, StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000,
	}
	r.wantSettings(t, in)
	done := r.configure(t, command.Configure{Generation: 4, Timeouts: standardTimeouts()})
	if in.Generation = 4; done.DatabaseOID != switched.DatabaseOID {
		t.Errorf("the settings are of database %d, the switch of %d", done.DatabaseOID, switched.DatabaseOID)
	}
	r.wantSettings(t, in)
	r.discard(t)
}

func restoreFenced(t *testing.T, s Stand) {
	r := restorableOf(t, s)
	late := r.fence
	r.fence.Epoch++
	r.ready(t)
	for _, c := range []command.Command{r.load, r.switching(true), command.Discard{DatabaseID: r.spec.DatabaseID}} {
		s.refuses(t, late, c, command.ReasonFenced)
	}
	r.wantRestored(t, false)
	noError(t, ports.Close(bounded(t), s.Agent, r.fence))
}
