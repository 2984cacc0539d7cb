package agent

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// inventoryCases are the cases of what an agent lists.
var inventoryCases = map[string]func(t *testing.T, s Stand){
	"inventory of a managed database":      inventoryManaged,
	"inventory of a single-login database": inventorySingleLogin,
	"inventory of an overlay":              inventoryOverlay,
	"inventory of files":                   inventoryFiles,
	"key of backups":                       keyOfBackups,
	"storage is tried":                     storageIsTried,
}

// inventoryOf is what an agent lists of a database; nil where it does not.
func inventoryOf(t *testing.T, s Stand, db id.DatabaseID) (found *command.InventoryDatabase) {
	t.Helper()
	after, more := command.InventoryFromStart, true
	for more {
		part := must(ports.Ask(bounded(t), s.Agent, command.AskInventory{After: after}))(t)
		for _, one := range part.Databases {
			if one.DatabaseID <= after {
				t.Errorf("%s comes after %s", one.DatabaseID, after)
			}
			if after = one.DatabaseID; after == db {
				found = &one
			}
		}
		more = part.More
	}
	return found
}

// wantListedAs has the agent list a database as the doctor wants it.
func wantListedAs(t *testing.T, s Stand, want *doctor.Database) {
	t.Helper()
	for _, f := range doctor.ExamineDatabase(want, inventoryOf(t, s, want.ID)) {
		t.Errorf("%s: %s", f.Code, f)
	}
	has, err := ports.Ask(bounded(t), s.Agent, command.AskRights{DatabaseID: want.ID})
	if want.Status == database.Deleted {
		if !command.RefusedFor(err, command.ReasonIsolated) {
			t.Errorf("what is inside a deleted database: %+v, %v", has, err)
		}
		return
	}
	noError(t, err)
	for _, f := range doctor.ExamineRights(want, has) {
		t.Errorf("%s: %s", f.Code, f)
	}
}

func listedAs(spec command.EnsureDatabase) *doctor.Database {
	want := &doctor.Database{Record: database.Record{
		ID: spec.DatabaseID, AccountID: spec.AccountID, Name: spec.Name, RoleModel: spec.RoleModel,
		ConnectionCap: spec.ConnectionCap, Status: database.Active,
	}, BackupKey: spec.BackupKey}
	for _, l := range spec.Logins {
		want.Logins = append(want.Logins, doctor.Login{Login: l.Login, Username: l.Username, Verifier: l.Verifier, Generation: 1})
	}
	return want
}

// listed is the stage's role as the record has it.
func (g *stage) listed(as role.Status) []role.Role {
	return []role.Role{{
		Username: g.role.Username, AccessProfile: g.role.AccessProfile, ConnectionLimit: g.role.ConnectionLimit, Status: as,
		Verifier: g.role.Verifier, CredentialGeneration: 1,
	}}
}

func inventoryManaged(t *testing.T, s Stand) {
	g := stageOf(t, s)
	want := listedAs(g.spec)
	wantListedAs(t, s, want)
	g.role.AccessProfile = role.ReadWrite
	g.prepare(t)
	want.Roles = g.listed(role.SQLReady)
	wantListedAs(t, s, want)
	g.admit(t)
	want.Roles[0].Status = role.Ready
	wantListedAs(t, s, want)

	want.Wanted = command.Configure{Generation: 1, Timeouts: standardTimeouts(), ReadOnly: true}
	g.configure(t, want.Wanted)
	want.Networks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	noError(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, command.SetAllowlist{
		DatabaseID: want.ID, Networks: want.Networks, Generation: 1,
	}))
	want.AccountID = newID[id.AccountID]()
	owner := command.SetAccounts{Databases: []database.Ownership{{DatabaseID: want.ID, AccountID: want.AccountID}}}
	noError(t, ask(bounded(t), s.Agent, owner))
	wantListedAs(t, s, want)

	g.change(t, g.shutting(role.Revocation))
	want.Roles[0].Status = role.Revoked
	g.setAccess(t, 2, false)
	want.Status = database.Stopped
	wantListedAs(t, s, want)

	if has := inventoryOf(t, s, want.ID); has.AccountID != want.AccountID || has.MadeBy == "" {
		t.Errorf("the database is listed as %+v", has)
	}
	for _, d := range wantNoStrays(t, s, want.ID).Pooler {
		if d.Database == want.Name {
			t.Errorf("the pooler differs: %+v", d)
		}
	}

	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: want.ID}))
	want.Status = database.Deleted
	wantListedAs(t, s, want)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Purge{DatabaseID: want.ID}))
	if has := inventoryOf(t, s, want.ID); has != nil {
		t.Errorf("what is purged is listed as %+v", has)
	}
}

func inventorySingleLogin(t *testing.T, s Stand) {
	spec, fence := made(t, s)
	wantListedAs(t, s, listedAs(spec))
	if has := inventoryOf(t, s, spec.DatabaseID); has.MadeBy != fence.OperationID {
		t.Errorf("it was made by %s, want %s", has.MadeBy, fence.OperationID)
	}
	if has := inventoryOf(t, s, newID[id.DatabaseID]()); has != nil {
		t.Errorf("no database is listed as %+v", has)
	}
}

// The groups of an overlay are listed, with what they have inside, and the roles that are in them; and after a purge, nothing.
func inventoryOverlay(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	want := listedAs(spec)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.EnsureOverlay{DatabaseID: want.ID}))
	want.OverlayStatus = database.OverlayActive
	wantListedAs(t, s, want)
	g := stageIn(s, spec, role.LegacyRoles)
	g.role.AccessProfile = role.ReadOnly
	g.prepare(t)
	want.Roles = g.listed(role.SQLReady)
	wantListedAs(t, s, want)
	g.connect(t)
	g.admit(t)
	want.Roles[0].Status = role.Ready
	wantListedAs(t, s, want)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: want.ID}))
	want.Status = database.Deleted
	wantListedAs(t, s, want)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Purge{DatabaseID: want.ID}))
	wantNoStrays(t, s, want.ID)
}

// wantNoStrays checks that no role of a database is one that nobody knows.
func wantNoStrays(t *testing.T, s Stand, db id.DatabaseID) command.Strays {
	t.Helper()
	has := must(ports.Ask(bounded(t), s.Agent, command.AskStrays{}))(t)
	for _, r := range has.Roles {
		if r.DatabaseID == db {
			t.Errorf("%s is a stray", r.Name)
		}
	}
	return has
}

// The key of a database's backups is told, also while it is out of service, and none of what is not there.
func keyOfBackups(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	q := command.AskBackupKey{DatabaseID: spec.DatabaseID}
	want := func() {
		t.Helper()
		if told := must(ports.Ask(bounded(t), s.Agent, q))(t); !told.Whole() || !bytes.Equal(told.Key, spec.BackupKey) {
			t.Error("it is another key")
		}
	}
	want()
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: spec.DatabaseID}))
	want()
	_, err := ports.Ask(bounded(t), s.Agent, command.AskBackupKey{DatabaseID: newID[id.DatabaseID]()})
	wantReason(t, err, command.ReasonNotFound)
}

func storageIsTried(t *testing.T, s Stand) {
	tried := must(ports.Ask(bounded(t), s.Agent, command.TryStorage{}))(t)
	if tried.Where == "" || tried.Wrong != "" {
		t.Errorf("%+v", tried)
	}
}

// filesBelow are the files that an agent lists below a folder.
func filesBelow(t *testing.T, s Stand, folder string) (found []command.StoredFile) {
	t.Helper()
	for after, more := "", true; more; {
		part := must(ports.Ask(bounded(t), s.Agent, command.AskFiles{After: after}))(t)
		for _, f := range part.Files {
			if after = f.Path; strings.HasPrefix(f.Path, folder) {
				found = append(found, f)
			}
		}
		more = part.More
	}
	return found
}

// The files of a backup are listed while it is there.
func inventoryFiles(t *testing.T, s Stand) {
	_, spec, report := backedUp(t, s, false)
	db := spec.DatabaseID
	file := backup.Backup{Filename: spec.Filename, SizeBytes: report.SizeBytes, RoleManifest: report.RoleManifest}
	record := doctor.FilesOf{Backups: []backup.Backup{file}, Names: []backup.Filename{file.Filename}}
	want := doctor.Files{Databases: map[id.DatabaseID]doctor.FilesOf{db: record}}
	examine := func() (found []doctor.Finding) {
		return doctor.ExamineFiles(want, filesBelow(t, s, string(db)+"/"))
	}
	if found := examine(); len(found) > 0 {
		t.Errorf("of a backup: %v", found)
	}
	noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: db, Filename: file.Filename}))
	if found := examine(); len(found) != 1 || found[0].Code != doctor.FileMissing {
		t.Errorf("once it is deleted: %v", found)
	}
}
