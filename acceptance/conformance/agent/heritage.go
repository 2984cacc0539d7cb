package agent

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Estate is a server that is lost in the course of the suite, and another one that inherits. Both keep archives.
type Estate struct {
	Lost, Heir Stand
	// Lose ends the server and its agent. What they kept stays.
	Lose func(t *testing.T)
	// Nothing is where no server has kept anything, as command.Inherit has it.
	Nothing string
	// Rot changes a bit of a backup's data where the server that is lost keeps it.
	Rot func(t *testing.T, db id.DatabaseID, filename backup.Filename)
}

// heirloomCases are each about a database that the lost server had.
var heirloomCases = map[string]func(t *testing.T, h *heirloom){
	"lost database as it was last":      heirloomRecovered,
	"lost database from a backup":       heirloomAdopted,
	"backup of a lost server that rots": heirloomRotten,
}

// heritageCases are about servers of which there is nothing. They need no archive.
var heritageCases = map[string]func(t *testing.T, s Stand, nothing string){
	"heritage that nobody has told of": heritageUntold,
	"heritage of nothing":              heritageOfNothing,
}

// inFolder is a case of an agent that keeps backups in a folder.
func inFolder(test func(t *testing.T, s Stand, nothing string)) func(t *testing.T, s Stand) {
	return func(t *testing.T, s Stand) { test(t, s, t.TempDir()) }
}

// Heritage is the suite of what an agent does with what a server that is gone has left.
func Heritage(t *testing.T, e Estate) {
	key := command.SetArchiveKey{Key: strings.Repeat("k", command.ArchiveKeyLength)}
	noError(t, ask(bounded(t), e.Lost.Agent, key))
	known := must(ports.Ask(bounded(t), e.Lost.Agent, command.AskCapabilities{}))(t)
	left := command.Inherit{Installation: known.Installation, Storage: known.Storage, Key: key.Key}
	all, last := map[string]*heirloom{}, (*heirloom)(nil)
	for _, name := range slices.Sorted(maps.Keys(heirloomCases)) {
		last = heirloomOf(t, &e, left)
		all[name] = last
	}
	wantReason(t, refusal(ports.Ask(bounded(t), e.Heir.Agent, left)), command.ReasonUnavailable) // its own archive has no key yet
	noError(t, ask(bounded(t), e.Heir.Agent, key))
	last.wantStored(t)
	e.Lose(t)
	t.Run("heritage of a server", func(t *testing.T) { heritageFound(t, last) })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { heirloomCases[name](t, all[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(heritageCases)) {
		t.Run(name, func(t *testing.T) { heritageCases[name](t, e.Heir, e.Nothing) })
	}
}

// heirloom is a database that the lost server had, with a verified backup that has the table "before" and not the table "after".
type heirloom struct {
	*Estate
	left   command.Inherit
	had    *stage
	report command.BackupReport // of the backup
	wrote  time.Time            // before the table "after" was made
	reads  bool                 // whether the role may read the table "before"
	fence  ports.Fence          // of the operation that makes the database anew
}

func heirloomOf(t *testing.T, e *Estate, left command.Inherit) *heirloom {
	t.Helper()
	h := &heirloom{Estate: e, left: left, had: stageOf(t, e.Lost)}
	h.had.open(t)
	table := "CREATE TABLE before (n int);\nGRANT SELECT ON before TO " + h.had.login.Username + ";\n"
	did(t, e.Lost.Server.Load(h.had.spec.Name, table), "a table")
	h.report = finish(t, e.Lost, newFence(), command.Backup{DatabaseID: h.had.spec.DatabaseID, Filename: backupName, Verify: true})
	if h.report.State != command.BackupDone {
		t.Fatalf("the backup: %+v", h.report)
	}
	h.reads = e.Lost.Server.May(h.had.login.Username, "SELECT", "before")
	h.wrote = time.Now()
	did(t, e.Lost.Server.Load(h.had.spec.Name, "CREATE TABLE after (n int);\n"), "a table")
	return h
}

// wantStored waits until the archive has all that was written, in other databases, too.
func (h *heirloom) wantStored(t *testing.T) {
	t.Helper()
	for at, ctx := moment(), bounded(t); windowOf(t, h.Lost, h.had.spec.DatabaseID).To.Before(at); time.Sleep(apart) {
		if ctx.Err() != nil {
			t.Fatal("what was written is never stored")
		}
	}
}

// inherited has the heir look until its own archive is ready.
func (h *heirloom) inherited(t *testing.T) command.Heritage {
	t.Helper()
	for ctx := bounded(t); ; time.Sleep(apart) {
		found, err := ports.Ask(ctx, h.Heir.Agent, h.left)
		if command.RefusedFor(err, command.ReasonUnavailable) {
			continue
		}
		if noError(t, err); found.Until == nil {
			t.Fatalf("there is %+v", found)
		}
		return found
	}
}

// adoption is the question that has the backup taken over.
func (h *heirloom) adoption() command.AdoptBackup {
	return command.AdoptBackup{
		DatabaseID: h.had.spec.DatabaseID, Filename: backupName, SizeBytes: h.report.SizeBytes,
		ManifestSHA256: h.report.ManifestSHA256, Lost: h.left.Installation, Turn: 1,
	}
}

// begun has the heir make the database, empty and closed, with its role, which does not get in yet.
func (h *heirloom) begun(t *testing.T) {
	t.Helper()
	h.inherited(t)
	closed := h.had.spec
	closed.Closed, h.fence, h.had.setUp = true, newFence(), changeFence()
	noError(t, ports.Tell(bounded(t), h.Heir.Agent, h.fence, closed))
	noError(t, ports.Tell(bounded(t), h.Heir.Agent, h.had.setUp, preparation(h.had.role)))
}

// filled has the empty database filled from a file of it.
func (h *heirloom) filled(t *testing.T, from command.Source) command.LoadReport {
	t.Helper()
	from.DatabaseID = h.had.spec.DatabaseID
	return loaded(t, h.Heir, h.fence, command.Load{DatabaseID: from.DatabaseID, Compare: true, Source: from})
}

// wantBack has the copy take its place, and checks that the database is as it was: with the table "after", or without it.
func (h *heirloom) wantBack(t *testing.T, from command.Source, after bool) {
	t.Helper()
	if report := h.filled(t, from); report.State != command.LoadReady || len(report.Notes) > 0 {
		t.Fatalf("the copy: %+v", report)
	}
	spec, heir := h.had.spec, *h.had
	heir.Stand = h.Heir
	first := command.Password{Username: spec.Logins[0].Username, Verifier: spec.Logins[0].Verifier, Generation: 3}
	whole := command.Switch{DatabaseID: spec.DatabaseID, Open: true, Passwords: []command.Password{first}}
	must(ports.Do(bounded(t), h.Heir.Agent, h.fence, whole))(t)
	noError(t, ports.Tell(bounded(t), h.Heir.Agent, h.fence, command.Discard{DatabaseID: spec.DatabaseID}))
	noError(t, ports.Tell(bounded(t), h.Heir.Agent, h.fence, spec))
	heir.admit(t)
	heir.wantIn(t, spec.Logins[0], true)
	heir.wantIn(t, heir.login, true)
	for _, r := range inventoryOf(t, h.Heir, spec.DatabaseID).Roles {
		if r.Name == first.Username && r.CredentialGeneration != first.Generation {
			t.Errorf("the password is of generation %d", r.CredentialGeneration)
		}
	}
	if v := h.Heir.Server; !v.HasTable(spec.Name, "before") || v.HasTable(spec.Name, "after") != after {
		t.Errorf("before: %t, after: %t", v.HasTable(spec.Name, "before"), v.HasTable(spec.Name, "after"))
	}
	if reads := h.Heir.Server.May(h.had.login.Username, "SELECT", "before"); reads != h.reads {
		t.Errorf("the role reads the owner's table: %t, and did before: %t", reads, h.reads)
	}
	wantReason(t, ports.Close(bounded(t), h.Heir.Agent, h.fence), command.ReasonCompleted)
}

// adopted asks until a backup is taken over, or is not.
func adopted(t *testing.T, s Stand, q command.AdoptBackup) command.BackupReading {
	t.Helper()
	for ctx := bounded(t); ; {
		if found := must(ports.Ask(ctx, s.Agent, q))(t); found.State != command.ReadingRunning {
			return found
		}
	}
}

// adopts has the heir take a backup over, and checks how that ends.
func (h *heirloom) adopts(t *testing.T, q command.AdoptBackup, want command.ReadingState) {
	t.Helper()
	if found := adopted(t, h.Heir, q); found.State != want || (found.Why == "") != (want == command.ReadingWhole) {
		t.Errorf("taking over %s in turn %d: %+v, want %s", q.Filename, q.Turn, found, want)
	}
}

func (h *heirloom) rereads(t *testing.T) command.BackupReading {
	t.Helper()
	return readAgain(t, h.Heir, command.RereadBackup{
		DatabaseID: h.had.spec.DatabaseID, Filename: backupName, SizeBytes: h.report.SizeBytes,
		ManifestSHA256: h.report.ManifestSHA256, Turn: time.Now().UnixNano(),
	})
}

// What there is is told again each time. What is said last replaces what was said before.
func heritageFound(t *testing.T, h *heirloom) {
	for range 2 {
		found := h.inherited(t)
		if found.Until.Before(h.wrote.Add(-2*time.Second)) || found.Until.After(time.Now().Add(time.Minute)) ||
			found.Why != "" || found.WhyNoBackups != "" {
			t.Errorf("there is %+v", found)
		}
	}
	for what, c := range map[string]struct {
		change  func(*command.Inherit)
		backups bool
	}{
		"another key":    {func(q *command.Inherit) { q.Key = strings.Repeat("z", command.ArchiveKeyLength) }, true},
		"another server": {func(q *command.Inherit) { q.Installation = string(newID[id.InstallationID]()) }, false},
		"another place":  {func(q *command.Inherit) { q.Storage = h.Nothing }, false},
	} {
		q := h.left
		c.change(&q)
		found := must(ports.Ask(bounded(t), h.Heir.Agent, q))(t)
		if found.Until != nil || found.Why == "" || (found.WhyNoBackups == "") != c.backups {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

func heirloomRecovered(t *testing.T, h *heirloom) {
	h.begun(t)
	spec := command.Backup{
		DatabaseID: h.had.spec.DatabaseID, Filename: passingName, Passing: true, Lost: h.left.Installation, SizeBytes: 8 << 20,
	}
	report := finish(t, h.Heir, h.fence, spec)
	if report.State != command.BackupDone || report.AsOf == nil || report.AsOf.Before(h.wrote) || report.AsOf.After(time.Now()) {
		t.Fatalf("the file: %+v", report)
	}
	h.wantBack(t, command.Source{Filename: passingName, Passing: true}, true)
	never, fence := made(t, h.Heir)
	spec.DatabaseID = never.DatabaseID
	wantUnmade(t, h.Heir, fence, spec, command.ReasonNotFound)
}

// A backup that was taken over is the heir's own, with the time of its verification, and stays where the making anew fails.
func heirloomAdopted(t *testing.T, h *heirloom) {
	h.begun(t)
	q := h.adoption()
	absent, other, ofNone := q, q, q
	absent.Filename, other.ManifestSHA256 = "20261121_065348.sql.gz", strings.Repeat("0", 64)
	ofNone.DatabaseID = newID[id.DatabaseID]()
	h.adopts(t, absent, command.ReadingDamaged)
	h.adopts(t, other, command.ReadingDamaged)
	wantReason(t, refusal(ports.Ask(bounded(t), h.Heir.Agent, ofNone)), command.ReasonNotFound)
	for _, q.Turn = range []int64{1, 1, 2} {
		h.adopts(t, q, command.ReadingWhole)
	}
	wantFile(t, h.Heir, command.Backup{DatabaseID: q.DatabaseID, Filename: q.Filename}, h.report)
	if r := h.rereads(t); r.State != command.ReadingWhole || r.VerifiedAt == nil || !r.VerifiedAt.Equal(*h.report.VerifiedAt) {
		t.Errorf("read again: %+v", r)
	}
	noError(t, ports.Close(bounded(t), h.Heir.Agent, h.fence))
	h.begun(t)
	q.Turn++
	h.adopts(t, q, command.ReadingWhole)
	h.wantBack(t, command.Source{Filename: q.Filename, ManifestSHA256: q.ManifestSHA256}, false)
}

// What has rotted is taken over as it is: who fills a database from it, or reads it, finds that.
func heirloomRotten(t *testing.T, h *heirloom) {
	h.Rot(t, h.had.spec.DatabaseID, backupName)
	h.begun(t)
	h.adopts(t, h.adoption(), command.ReadingWhole)
	if r := h.rereads(t); r.State != command.ReadingDamaged {
		t.Errorf("read again: %+v", r)
	}
	report := h.filled(t, command.Source{Filename: backupName, ManifestSHA256: h.report.ManifestSHA256})
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid || report.Message == "" {
		t.Errorf("the copy: %+v", report)
	}
	noError(t, ports.Close(bounded(t), h.Heir.Agent, h.fence))
}

// What nobody has told of an agent does not look for, and its own it does not take for another one's.
func heritageUntold(t *testing.T, s Stand, _ string) {
	known := must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t)
	own := command.Inherit{
		Installation: string(newID[id.InstallationID]()), Storage: known.Storage, Key: strings.Repeat("k", command.ArchiveKeyLength),
	}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, own)), command.ReasonInvalid)
	db, fence := made(t, s)
	q := command.AdoptBackup{
		DatabaseID: db.DatabaseID, Filename: backupName, ManifestSHA256: strings.Repeat("0", 64), Lost: own.Installation,
	}
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonNotRecoverable)
	spec := command.Backup{DatabaseID: db.DatabaseID, Filename: passingName, Passing: true, Lost: own.Installation}
	wantUnmade(t, s, fence, spec, command.ReasonNotRecoverable)
	spec.DatabaseID = newID[id.DatabaseID]()
	s.refuses(t, newFence(), spec, command.ReasonNotFound)
	q.ManifestSHA256 = ""
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, q)), command.ReasonInvalid)
}

// Where nothing is, nothing is found, and nothing is made.
func heritageOfNothing(t *testing.T, s Stand, nothing string) {
	left := command.Inherit{
		Installation: string(newID[id.InstallationID]()), Storage: nothing, Key: strings.Repeat("k", command.ArchiveKeyLength),
	}
	if known := must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t); known.Archive != nil {
		noError(t, ask(bounded(t), s.Agent, command.SetArchiveKey{Key: left.Key}))
	}
	if found := must(ports.Ask(bounded(t), s.Agent, left))(t); found.Until != nil || found.Why == "" || found.WhyNoBackups == "" {
		t.Errorf("there is %+v", found)
	}
	db, fence := made(t, s)
	found := adopted(t, s, command.AdoptBackup{
		DatabaseID: db.DatabaseID, Filename: backupName, ManifestSHA256: strings.Repeat("0", 64), Lost: left.Installation,
	})
	if found.State != command.ReadingDamaged || found.Why == "" {
		t.Errorf("taking over a backup: %+v", found)
	}
	wantUnmade(t, s, fence, command.Backup{
		DatabaseID: db.DatabaseID, Filename: passingName, Passing: true, Lost: left.Installation,
	}, command.ReasonNotRecoverable)
}
