package agent

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// deletionCases are about databases that go out of service, come back, or are removed for good.
var deletionCases = map[string]func(t *testing.T, s Stand){
	"deletion isolates a database":              deletionIsolates,
	"deletion is taken back":                    deletionTakenBack,
	"deletion given up":                         deletionGivenUp,
	"deletion again is the same":                deletionAgain,
	"deletion by a worker without its lease":    deletionFenced,
	"deletion of no database":                   deletionOfNothing,
	"deletion of a clone without its data":      deletionOfUnfilled,
	"isolated database takes no commands":       isolatedTakesNothing,
	"isolated database comes back closed":       isolatedComesBackClosed,
	"isolated database keeps its names":         isolatedKeepsNames,
	"isolated database keeps no role":           isolatedKeepsNoRole,
	"isolated database with half a role":        isolatedWithHalfARole,
	"purged database with half a role":          purgedWithHalfARole,
	"isolated database is purged":               isolatedPurged,
	"database in service is not purged":         inServiceNotPurged,
	"database in service is proved to serve so": inServiceRejoined,
}

// deletable is a stage with a table, "before", settings, and an allowlist.
type deletable struct {
	*stage
	fence ports.Fence
	last  command.Backup
}

func deletableOf(t *testing.T, s Stand) *deletable {
	t.Helper()
	g := admitted(t, s)
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE before (n int);\n"), "a table")
	g.configure(t, command.Configure{Generation: 3, Timeouts: standardTimeouts()})
	set(t, s, g.spec, 4, netip.PrefixFrom(s.Server.From(), s.Server.From().BitLen()))
	return &deletable{stage: g, fence: newFence(), last: command.Backup{
		DatabaseID: g.spec.DatabaseID, Filename: backupName, Verify: true, ForDeletion: true,
	}}
}

// deleted closes the database, makes its last backup, and isolates it.
func (d *deletable) deleted(t *testing.T) command.BackupReport {
	t.Helper()
	d.setAccess(t, 7, false)
	report := finish(t, d.Stand, d.fence, d.last)
	if report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Fatalf("the last backup: %+v", report)
	}
	d.tell(t, d.isolation())
	return report
}

// isolated isolates the database without a last backup.
func (d *deletable) isolated(t *testing.T) {
	t.Helper()
	d.setAccess(t, 7, false)
	d.tell(t, d.isolation())
}

func (d *deletable) isolation() command.Isolate {
	return command.Isolate{DatabaseID: d.spec.DatabaseID}
}

func (d *deletable) comeback(open bool) command.Rejoin {
	return command.Rejoin{DatabaseID: d.spec.DatabaseID, Open: open}
}

func (d *deletable) purge() command.Purge { return command.Purge{DatabaseID: d.spec.DatabaseID} }

func (d *deletable) tell(t *testing.T, c command.Returning[command.None]) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), d.Agent, d.fence, c))
}

// wantIsolated checks that the database stands, and that nobody gets into it.
func (d *deletable) wantIsolated(t *testing.T) {
	t.Helper()
	as := "deleted_" + id.Compact(d.spec.DatabaseID)
	if names := d.Server.Databases(); slices.Contains(names, d.spec.Name) || !slices.Contains(names, as) {
		t.Errorf("the database does not stand as %s alone: %v", as, names)
	}
	for _, l := range append(slices.Clone(d.spec.Logins), d.login) {
		d.wantIn(t, l, false)
		if d.Server.LogInDirectly(as, l.Username, l.Password) {
			t.Errorf("%s gets in by its other name", l.Username)
		}
	}
}

// wantBack checks that the database is what it was.
func (d *deletable) wantBack(t *testing.T, before command.SettingsInForce) {
	t.Helper()
	wantStands(t, d.Server, d.spec)
	d.wantIn(t, d.spec.Logins[0], true)
	d.wantIn(t, d.login, true)
	if !d.Server.HasTable(d.spec.Name, "before") {
		t.Error("its table is gone")
	}
	d.wantSettings(t, before)
}

func (d *deletable) settings(t *testing.T) command.SettingsInForce {
	t.Helper()
	in := must(ports.Ask(bounded(t), d.Agent, command.Settings{DatabaseID: d.spec.DatabaseID}))(t)
	in.Pending = 0 // in the end
	return in
}

func deletionIsolates(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	sessions := d.sessions(t, d.spec.Logins[0])
	report := d.deleted(t)
	wantAlive(t, sessions, false)
	d.wantIsolated(t)
	wantFile(t, s, d.last, report)
	for range 2 {
		wantReason(t, ports.Close(bounded(t), s.Agent, d.fence), command.ReasonCompleted)
	}
	d.wantIsolated(t)
	wantFile(t, s, d.last, report)
	noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: d.spec.DatabaseID, Filename: d.last.Filename}))
	wantNoFile(t, s, d.spec.DatabaseID, d.last.Filename)
}

func deletionTakenBack(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	report := d.deleted(t)
	back := newFence()
	for range 2 {
		done := must(ports.Do(bounded(t), s.Agent, back, d.comeback(true)))(t)
		if done.DatabaseOID != before.DatabaseOID {
			t.Errorf("it came back as %+v, and was %d", done, before.DatabaseOID)
		}
		d.wantBack(t, before)
	}
	wantReason(t, ports.Close(bounded(t), s.Agent, back), command.ReasonCompleted)
	wantFile(t, s, d.last, report)
	d.tell(t, d.isolation()) // which was done before
	d.wantBack(t, before)
	d.setAccess(t, 8, false)
	d.setAccess(t, 9, true)
	d.wantBack(t, before)
	d.fence, d.last.Filename = newFence(), "20261121_065348.sql.gz"
	noError(t, ports.Tell(bounded(t), s.Agent, d.fence, d.isolation()))
	d.wantIsolated(t)
}

// A deletion that ends before the isolation leaves nothing of its file, and the database is opened again.
func deletionGivenUp(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	for _, over := range []bool{false, true} {
		d.fence = newFence()
		if over {
			finish(t, s, d.fence, d.last)
		} else {
			must(s.Agent.Do(bounded(t), d.fence, d.last))(t)
		}
		for range 2 {
			noError(t, ports.Close(bounded(t), s.Agent, d.fence))
		}
		wantNoFile(t, s, d.spec.DatabaseID, d.last.Filename)
		for _, c := range []command.Command{d.last, d.isolation()} {
			s.refuses(t, d.fence, c, command.ReasonClosed)
		}
	}
	d.wantBack(t, before)
}

// Each command again does nothing, under a newer lease too, nor does another operation's.
func deletionAgain(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	report := d.deleted(t)
	d.fence.Epoch++
	if again := finish(t, s, d.fence, d.last); !reflect.DeepEqual(again, report) {
		t.Errorf("first %+v, then %+v", report, again)
	}
	d.tell(t, d.isolation())
	d.fence = newFence()
	d.tell(t, d.isolation())
	d.wantIsolated(t)
	wantReason(t, ports.Close(bounded(t), s.Agent, d.fence), command.ReasonCompleted)
	wantFile(t, s, d.last, report)
}

func deletionFenced(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	late := d.fence
	d.fence.Epoch++
	must(s.Agent.Do(bounded(t), d.fence, d.last))(t)
	for _, c := range []command.Command{d.last, d.isolation(), d.comeback(true), d.purge()} {
		s.refuses(t, late, c, command.ReasonFenced)
	}
	noError(t, ports.Close(bounded(t), s.Agent, d.fence))
}

// Of a database that the server does not have there is nothing to isolate or to bring back, and nothing to be removed but files.
func deletionOfNothing(t *testing.T, s Stand) {
	nothing := newID[id.DatabaseID]()
	s.refuses(t, newFence(), command.Isolate{DatabaseID: nothing}, command.ReasonNotFound)
	back := command.Rejoin{DatabaseID: nothing, Open: true}
	s.refuses(t, newFence(), back, command.ReasonNotFound)
	fence := newFence()
	for range 2 {
		noError(t, ports.Tell(bounded(t), s.Agent, fence, command.Purge{DatabaseID: nothing}))
	}
}

func deletionOfUnfilled(t *testing.T, s Stand) {
	c := cloningOf(t, s)
	c.steps()[0](t)
	isolation := command.Isolate{DatabaseID: c.clone.DatabaseID}
	s.refuses(t, newFence(), isolation, command.ReasonFailed)
	back := command.Rejoin{DatabaseID: c.clone.DatabaseID, Open: true}
	s.refuses(t, newFence(), back, command.ReasonFailed)
	c.wantShut(t)
	noError(t, ports.Close(bounded(t), s.Agent, c.fence))
	wantNothing(t, s.Server, c.clone)
}

// What is sent to an isolated database is refused for good, and changes nothing of it.
func isolatedTakesNothing(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	finish(t, s, newFence(), command.Backup{DatabaseID: d.spec.DatabaseID, Filename: backupName})
	d.isolated(t)
	db := d.spec.DatabaseID
	for _, c := range []command.Command{
		command.SetAccess{DatabaseID: db, Generation: 20, Open: true}, command.SetAllowlist{DatabaseID: db, Generation: 20},
		command.Configure{DatabaseID: db, Generation: 20}, command.Backup{DatabaseID: db, Filename: "20261121_065348.sql.gz"},
		command.Load{DatabaseID: db, Source: command.Source{DatabaseID: db, Filename: backupName}},
		command.Switch{DatabaseID: db, Open: true}, d.role, d.shutting(role.Revocation),
		s.installing(t, db, extension.Citext),
		command.RemoveRole{DatabaseID: db, Username: d.login.Username, Generation: d.generation()},
	} {
		fence := newFence()
		if kind := c.About().Kind; strings.HasSuffix(string(kind), "allowlist") || strings.HasSuffix(string(kind), "configure") {
			fence = ports.Fence{}
		}
		s.refuses(t, fence, c, command.ReasonIsolated)
	}
	for _, unanswered := range []error{
		refusal(ports.Ask(bounded(t), s.Agent, command.DatabaseSize{DatabaseID: db})),
		refusal(ports.Ask(bounded(t), s.Agent, command.Settings{DatabaseID: db})),
		refusal(ports.Ask(bounded(t), s.Agent, command.InspectLogin{
			DatabaseID: db, Username: d.login.Username, Verifier: d.login.Verifier,
		})),
		refusal(ports.Ask(bounded(t), s.Agent, command.OpenUpload{
			DatabaseID: db, UploadID: newID[id.UploadID](), SizeBytes: 1, ExpiresAt: time.Now().Add(time.Minute),
		})),
	} {
		wantReason(t, unanswered, command.ReasonIsolated)
	}
	for after := command.AppliedFromStart; ; {
		part := must(ports.Ask(bounded(t), s.Agent, command.AskApplied{After: after}))(t)
		if slices.ContainsFunc(part.Databases, func(one command.AppliedIn) bool { return one.DatabaseID == db }) {
			t.Error("it tells of what is applied in it")
		}
		if !part.More {
			break
		}
		after = part.Databases[len(part.Databases)-1].DatabaseID
	}
	d.wantIsolated(t)
	must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(true)))(t)
	d.wantBack(t, before)
}

// What was stopped stays so unless it is told otherwise, and what Configure has closed stays so until that says otherwise.
func isolatedComesBackClosed(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	d.isolated(t)
	must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(false)))(t)
	d.wantIn(t, d.spec.Logins[0], false)
	d.setAccess(t, 8, true)
	d.wantBack(t, before)
	closed := command.Configure{Generation: 4, Timeouts: standardTimeouts(), Closed: true}
	d.configure(t, closed)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), d.isolation()))
	must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(true)))(t)
	d.wantIn(t, d.spec.Logins[0], false)
	closed.Generation, closed.Closed = 5, false
	d.configure(t, closed)
	before.Generation = 5
	d.wantBack(t, before)
}

// The names of an isolated database are nobody else's, and its making is not gone on with.
func isolatedKeepsNames(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	d.isolated(t)
	another := newSpec(database.SingleLogin)
	another.Name = d.spec.Name
	another.Logins[0].Username = d.spec.Name
	fence := newFence()
	s.refuses(t, fence, another, command.ReasonNameTaken)
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	s.refuses(t, newFence(), d.spec, command.ReasonConflict)
	d.wantIsolated(t)
}

// A role of another database of the account can be removed, whatever it has in an isolated one.
func isolatedKeepsNoRole(t *testing.T, s Stand) {
	d, other := deletableOf(t, s), admitted(t, s)
	kept := role.Dependency{Kind: role.GrantDependency, Name: "kept_there"}
	did(t, s.Server.AddDependencyIn(d.spec.Name, other.login.Username, kept), "a grant")
	other.remove(t, d.spec.DatabaseID)
	other.wantListed(t, true)
	d.isolated(t)
	other.wantGone(t, other.remove(t, d.spec.DatabaseID))
	must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(true)))(t)
	d.wantIn(t, d.spec.Logins[0], true)
}

// halfMade is a database that can be deleted, with a role whose set-up was interrupted before or after its preparation.
func halfMade(t *testing.T, s Stand, prepared bool) *deletable {
	t.Helper()
	d := &deletable{stage: stageOf(t, s), fence: newFence()}
	if prepared {
		d.prepare(t)
	}
	return d
}

// Its set-up goes on when the database is back, whatever of it has come meanwhile.
func isolatedWithHalfARole(t *testing.T, s Stand) {
	for _, prepared := range []bool{false, true} {
		d := halfMade(t, s, prepared)
		d.isolated(t)
		if !prepared {
			s.refuses(t, d.setUp, preparation(d.role), command.ReasonIsolated)
		}
		s.refuses(t, d.setUp, d.role, command.ReasonIsolated)
		d.wantIn(t, d.login, false)
		must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(true)))(t)
		d.wantIn(t, d.login, false)
		d.open(t)
		d.wantIn(t, d.login, true)
	}
}

// It goes with the database, and does not come after it.
func purgedWithHalfARole(t *testing.T, s Stand) {
	for _, prepared := range []bool{false, true} {
		d := halfMade(t, s, prepared)
		d.isolated(t)
		d.tell(t, d.purge())
		d.wantListed(t, false)
		if !prepared {
			s.refuses(t, d.setUp, preparation(d.role), command.ReasonNotFound)
		}
		s.refuses(t, d.setUp, d.role, command.ReasonNotFound)
		d.wantListed(t, false)
		wantNothing(t, s.Server, d.spec)
	}
}

// Nothing is left of a database that is purged, and the names are free. Another operation's purge finds nothing more.
func isolatedPurged(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	ordinary := command.Backup{DatabaseID: d.spec.DatabaseID, Filename: "20261121_065348.sql.gz"}
	finish(t, s, newFence(), ordinary)
	d.deleted(t)
	d.fence = newFence()
	for range 2 {
		d.tell(t, d.purge())
		wantNothing(t, s.Server, d.spec)
		d.wantListed(t, false)
		wantNoFile(t, s, d.spec.DatabaseID, d.last.Filename)
		wantNoFile(t, s, d.spec.DatabaseID, ordinary.Filename)
		if as := "deleted_" + id.Compact(d.spec.DatabaseID); slices.Contains(s.Server.Databases(), as) {
			t.Errorf("%s is left", as)
		}
	}
	wantReason(t, ports.Close(bounded(t), s.Agent, d.fence), command.ReasonCompleted)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), d.purge()))
	s.refuses(t, newFence(), d.comeback(true), command.ReasonNotFound)
	again := newSpec(d.spec.RoleModel)
	again.Name, again.Logins[0].Username = d.spec.Name, d.spec.Name
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), again))
	wantStands(t, s.Server, again)
}

func inServiceNotPurged(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	report := finish(t, s, newFence(), command.Backup{DatabaseID: d.spec.DatabaseID, Filename: backupName})
	s.refuses(t, d.fence, d.purge(), command.ReasonInService)
	noError(t, ports.Close(bounded(t), s.Agent, d.fence))
	d.wantBack(t, before)
	wantFile(t, s, command.Backup{DatabaseID: d.spec.DatabaseID, Filename: backupName}, report)
	d.setAccess(t, 7, false)
	s.refuses(t, newFence(), d.purge(), command.ReasonInService)
}

// Nobody who is in is disturbed.
func inServiceRejoined(t *testing.T, s Stand) {
	d := deletableOf(t, s)
	before := d.settings(t)
	sessions := d.sessions(t, d.spec.Logins[0])
	done := must(ports.Do(bounded(t), s.Agent, newFence(), d.comeback(true)))(t)
	if done.DatabaseOID != before.DatabaseOID {
		t.Errorf("it is %+v, and was %d", done, before.DatabaseOID)
	}
	wantAlive(t, sessions, true)
	d.wantBack(t, before)
}
