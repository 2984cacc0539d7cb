package command_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/slowquery"
)

func changed[C any](c C, change func(*C)) C {
	change(&c)
	return c
}

func databaseWith(change func(*command.EnsureDatabase)) command.EnsureDatabase {
	c := ensure()
	c.Logins = slices.Clone(c.Logins)
	change(&c)
	return c
}

func TestWhatCannotBeCarriedOutIsRefused(t *testing.T) {
	admission := command.AdmitRole{
		DatabaseID: db, Username: username, AccessProfile: role.Custom, ConnectionLimit: 3, Verifier: verifier, Password: "pw",
	}
	rotation := command.ChangeLogin{
		DatabaseID: db, Username: "orders", Want: role.Rotation, Verifier: verifier, NewPassword: "pw",
	}
	upgrade := command.ChangeExtension{DatabaseID: db, Extension: extension.Citext, Change: extension.Upgrade, Version: "1.6"}
	load := command.Load{DatabaseID: db, Source: command.Source{DatabaseID: db, Filename: "20261121_065347.sql.gz"}}
	upload := command.Load{DatabaseID: db, Source: command.Source{
		DatabaseID: db, Upload: id.UploadID(other), SizeBytes: 1, SHA256: strings.Repeat("0f", 32),
	}}
	outcome := command.ReadOutcome{
		DatabaseID: db, Username: username, OperationID: op, Step: "open", AccessProfile: role.Custom, ConnectionLimit: 3,
	}
	forward := command.Forward{
		DatabaseID: db, Name: "orders", Host: "db2.example.com", Port: 6432, Until: until,
		Logins: []command.Forwarding{{Username: "orders", Verifier: verifier}},
	}
	hostBits := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}
	quoted := []command.Forwarding{{Username: `a"b`, Verifier: verifier}}
	plain := []command.Forwarding{{Username: "orders", Verifier: "secret"}}
	if err := forward.Check(); err != nil {
		t.Error("a forward: ", err)
	}
	for what, c := range map[string]interface{ Check() error }{
		"forward to a quote":      changed(forward, func(c *command.Forward) { c.Host = "a'b" }),
		"forward to no port":      changed(forward, func(c *command.Forward) { c.Port = 65536 }),
		"forward without an end":  changed(forward, func(c *command.Forward) { c.Until = time.Time{} }),
		"forward for host bits":   changed(forward, func(c *command.Forward) { c.Networks = hostBits }),
		"forward of a quote":      changed(forward, func(c *command.Forward) { c.Logins = quoted }),
		"forward by a password":   changed(forward, func(c *command.Forward) { c.Logins = plain }),
		"forward of a long CA":    changed(forward, func(c *command.Forward) { c.CA = strings.Repeat("x", 1<<20) }),
		"welcome of no address":   command.Welcome{DatabaseID: db, From: []netip.Addr{{}}},
		"welcome of an interface": command.Welcome{DatabaseID: db, From: []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}},
		"welcome of a mapped one": command.Welcome{DatabaseID: db, From: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}},
		"welcome of too many":     command.Welcome{DatabaseID: db, From: make([]netip.Addr, command.MostWelcome+1)},
		"no backup key":           databaseWith(func(c *command.EnsureDatabase) { c.BackupKey = nil }),
		"half a key":              databaseWith(func(c *command.EnsureDatabase) { c.BackupKey = c.BackupKey[:16] }),
		"half a key of one":       command.SetArchiveKey{Key: strings.Repeat("k", command.ArchiveKeyLength/2)},
		"no UUID":                 command.SetAccess{DatabaseID: "x"},
		"reserved name":           databaseWith(func(c *command.EnsureDatabase) { c.Name = "postgres" }),
		"quote in a name":         databaseWith(func(c *command.EnsureDatabase) { c.Name = `a"; DROP` }),
		"role model":              databaseWith(func(c *command.EnsureDatabase) { c.RoleModel = "none" }),
		"negative cap":            databaseWith(func(c *command.EnsureDatabase) { c.ConnectionCap = -1 }),
		"no logins":               databaseWith(func(c *command.EnsureDatabase) { c.Logins = nil }),
		"one login twice":         databaseWith(func(c *command.EnsureDatabase) { c.Logins[0] = c.Logins[1] }),
		"login of another":        databaseWith(func(c *command.EnsureDatabase) { c.Logins[0].Username = "postgres" }),
		"login of no model":       databaseWith(func(c *command.EnsureDatabase) { c.RoleModel = database.SingleLogin }),
		"no verifier":             databaseWith(func(c *command.EnsureDatabase) { c.Logins[2].Verifier = "plain" }),
		"no password of owner":    databaseWith(func(c *command.EnsureDatabase) { c.Logins[2].Password = "" }),

		"snapshot of none":   command.KeepSnapshot{InstallationID: "x", Name: "20260131T093000.000Z"},
		"snapshot's name":    command.OpenSnapshot{InstallationID: id.InstallationID(other), Name: "../x"},
		"heritage of none":   command.Inherit{Installation: "../x", Key: strings.Repeat("k", command.ArchiveKeyLength)},
		"heritage, no key":   command.Inherit{Installation: "x"},
		"heritage, a line":   command.Inherit{Installation: "x", Storage: "a\nb", Key: strings.Repeat("k", command.ArchiveKeyLength)},
		"adopted from none":  command.AdoptBackup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Lost: "../x"},
		"lost, not passing":  command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Lost: "x"},
		"lost, no such":      command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Passing: true, Lost: "../x"},
		"drill of no moment": command.Drill{DatabaseID: db, ID: id.DrillID(db)},
		"drill without ID":   command.Drill{DatabaseID: db, At: time.Unix(1, 0)},
		"drill's manifest": command.Drill{
			DatabaseID: db, ID: id.DrillID(db), At: time.Unix(1, 0), Filename: "20261121_065347.sql.gz",
		},
		"peer's short token": passingThere(func(c *command.Load) { c.Peer.Token = "short" }),
		"peer of no scheme":  passingThere(func(c *command.Load) { c.Peer.URL = "10.0.0.2:6433" }),
		"peer with a login":  passingThere(func(c *command.Load) { c.Peer.URL = "https://a:b@10.0.0.2" }),
		"a peer of nobody":   passingThere(func(c *command.Load) { c.Peer = command.Peer{} }),
		"a peer's backup":    passingThere(func(c *command.Load) { c.Source.Passing = false }),
		"moved from here":    passingThere(func(c *command.Load) { c.Moving, c.Source.AtPeer = true, false }),
		"followed to stay":   command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Followed: true},
		"admitted by a word": command.AdmitPeer{DatabaseID: db, TokenSHA256: "sesame"},
		"reached for nobody": command.ReachPeer{Peer: command.Peer{URL: "https://10.0.0.2", Token: token}},
		"adopted of none": command.AdoptBackup{
			DatabaseID: db, Filename: "20261121_065347.sql.gz", SizeBytes: 1, ManifestSHA256: strings.Repeat("0f", 32),
		},
		"adopted for none": command.AdoptBackup{
			DatabaseID: db, Filename: "20261121_065347.sql.gz", SizeBytes: 1, ManifestSHA256: strings.Repeat("0f", 32),
			Peer: command.Peer{URL: "https://10.0.0.2", Token: token},
		},
		"moving a backup":   changed(load, func(c *command.Load) { c.Moving = true }),
		"no manifest":       command.RereadBackup{DatabaseID: db, Filename: "20261121_065347.sql.gz"},
		"host bits":         command.SetAllowlist{DatabaseID: db, Networks: networks("10.0.0.1/8")},
		"empty network":     command.SetAllowlist{DatabaseID: db, Networks: make([]netip.Prefix, 1)},
		"IPv4 in IPv6":      command.SetAllowlist{DatabaseID: db, Networks: networks("::ffff:10.0.0.0/104")},
		"filename":          command.Backup{DatabaseID: db, Filename: "../../etc/passwd"},
		"position of none":  command.StorageUse{After: "../x"},
		"usage after none":  command.AskUsage{},
		"after no UUID":     command.AskApplied{After: "x"},
		"negative bytes":    command.Backup{DatabaseID: db, Filename: "x", MaxBytes: -1},
		"filename to open":  command.OpenBackup{DatabaseID: db, Filename: "x"},
		"rest of that":      command.OpenRest{DatabaseID: db, Filename: "x"},
		"rest before all":   command.OpenRest{DatabaseID: db, Filename: "20260301_120000.sql.gz", Offset: -1},
		"manifest's file":   command.OpenManifest{DatabaseID: db, Filename: "x"},
		"timeout of 0":      command.Configure{DatabaseID: db, Timeouts: &command.Timeouts{StatementMs: 1, LockMs: 1}},
		"timeout too long":  command.Configure{DatabaseID: db, Timeouts: &command.Timeouts{1 << 31, 1, 1}},
		"no account":        command.SetAccounts{Databases: []database.Ownership{{DatabaseID: db}}},
		"outcome of none":   changed(outcome, func(q *command.ReadOutcome) { q.OperationID = "" }),
		"outcome of all":    changed(outcome, func(q *command.ReadOutcome) { q.Step = "" }),
		"outcome of owner":  changed(outcome, func(q *command.ReadOutcome) { q.Username = "orders" }),
		"outcome as plain":  changed(outcome, func(q *command.ReadOutcome) { q.Verifier = "plain" }),
		"outcome as nobody": changed(outcome, func(q *command.ReadOutcome) { q.AccessProfile = "" }),
		"outcome without":   changed(outcome, func(q *command.ReadOutcome) { q.ConnectionLimit = 0 }),
		"overlay of none":   command.EnsureOverlay{},
		"verifier to look":  command.InspectLogin{DatabaseID: db, Username: "orders", Verifier: "plain"},
		"other's databases": command.RemoveRole{DatabaseID: db, Username: username, AccountDatabases: []id.DatabaseID{"x"}},

		"no UUID of extensions": command.Extensions{DatabaseID: "x"},
		"no UUID of statements": command.SlowQueries{DatabaseID: "x", Order: slowquery.ByMean},
		"order of statements":   command.SlowQueries{DatabaseID: db, Order: "rows"},
		"unknown extension":     changed(upgrade, func(c *command.ChangeExtension) { c.Extension = "plperlu" }),
		"unknown change":        changed(upgrade, func(c *command.ChangeExtension) { c.Change = "drop" }),
		"version with a quote":  changed(upgrade, func(c *command.ChangeExtension) { c.Version = "1.6'; DROP" }),
		"file to load":          changed(load, func(c *command.Load) { c.Source.Filename = "../x" }),
		"database to load from": changed(load, func(c *command.Load) { c.Source.DatabaseID = "x" }),
		"database to load":      changed(load, func(c *command.Load) { c.DatabaseID = "x" }),
		"manifest's sum":        changed(load, func(c *command.Load) { c.Source.ManifestSHA256 = strings.Repeat("0F", 32) }),
		"size of nothing":       changed(upload, func(c *command.Load) { c.Source.SizeBytes = 0 }),
		"no sum of an upload":   changed(upload, func(c *command.Load) { c.Source.SHA256 = "" }),
		"upload is no UUID":     changed(upload, func(c *command.Load) { c.Source.Upload = "../x" }),
		"upload of another":     changed(upload, func(c *command.Load) { c.Source.DatabaseID = other }),
		"upload and file":       changed(upload, func(c *command.Load) { c.Source.Filename = load.Source.Filename }),
		"upload to compare":     changed(upload, func(c *command.Load) { c.Compare = true }),
		"upload without end":    command.OpenUpload{DatabaseID: db, UploadID: id.UploadID(other), SizeBytes: 1},
		"upload of nothing":     command.OpenUpload{DatabaseID: db, UploadID: id.UploadID(other), ExpiresAt: time.Now()},
		"chunk before it all":   command.Chunk{DatabaseID: db, UploadID: id.UploadID(other), Offset: -1},
		"upload to ask for":     command.AskUpload{DatabaseID: db, UploadID: "../x"},
		"upload to drop":        command.DropUpload{DatabaseID: db, UploadID: "../x"},
		"two become one": changed(load, func(c *command.Load) {
			c.Names = []command.Renaming{{From: "a", To: "c"}, {From: "b", To: "c"}}
		}),
		"one becomes two": changed(load, func(c *command.Load) {
			c.Names = []command.Renaming{{From: "a", To: "b"}, {From: "a", To: "c"}}
		}),
		"quote in a name to be": changed(load, func(c *command.Load) { c.Names = []command.Renaming{{From: "a", To: `b"`}} }),
		"no UUID to switch":     command.Switch{DatabaseID: "x"},
		"no UUID to discard":    command.Discard{},
		"no generation":         command.Switch{DatabaseID: db, Passwords: []command.Password{{Verifier: verifier}}},

		"no version to prove": command.QualifyExtension{Extension: extension.Citext},
		"nothing to prove":    command.QualifyExtension{Version: "1.6"},

		"profile":          changed(admission, func(c *command.AdmitRole) { c.AccessProfile = "root" }),
		"no limit":         changed(admission, func(c *command.AdmitRole) { c.ConnectionLimit = 0 }),
		"verifier of md5":  changed(admission, func(c *command.AdmitRole) { c.Verifier = "md5" }),
		"no new password":  changed(admission, func(c *command.AdmitRole) { c.Password = "" }),
		"no change":        changed(rotation, func(c *command.ChangeLogin) { c.Want = role.Removal }),
		"credential":       changed(rotation, func(c *command.ChangeLogin) { c.CredentialGeneration = -1 }),
		"quote in a login": changed(rotation, func(c *command.ChangeLogin) { c.Username = `a"b` }),
	} {
		if err := c.Check(); !command.RefusedFor(err, command.ReasonInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOnlyAdditionalRolesOfTheDatabaseCanBeNamed(t *testing.T) {
	own := "pgh_" + id.Compact(db)
	for _, name := range []string{
		"orders", names().Runtime, names().WriteGroup, "postgres", "pgherd_agent", "pgh_" + id.Compact(other) + "_c1", own + "_c0",
		own + "_c", own + "_c1x", own + "_l0", own + "_l", own + "_l1x", "pgh_" + id.Compact(other) + "_l1", own + "_lc1",
		`x"; DROP`, "",
	} {
		for _, c := range []command.Command{
			command.PrepareRole{DatabaseID: db, Username: name, AccessProfile: role.Custom, ConnectionLimit: 1},
			command.AdmitRole{
				DatabaseID: db, Username: name, AccessProfile: role.Custom, ConnectionLimit: 1, Verifier: verifier, Password: "pw",
			},
			command.ChangeLogin{DatabaseID: db, Username: name, Want: role.Revocation},
			command.ChangeLogin{DatabaseID: db, Username: name, Want: role.Expiry}, command.RemoveRole{DatabaseID: db, Username: name},
		} {
			if err := c.Check(); !command.RefusedFor(err, command.ReasonInvalid) {
				t.Errorf("%T of %q: %v", c, name, err)
			}
		}
	}
}

// passingThere is a copy of a file at a peer, but for a change.
func passingThere(change func(c *command.Load)) command.Load {
	c := command.Load{
		DatabaseID: db, Source: command.Source{DatabaseID: db, Filename: "20261121_065347.sql.gz", Passing: true, AtPeer: true},
		Peer: command.Peer{URL: "https://10.0.0.2:6433", Token: token},
	}
	change(&c)
	return c
}
