package command_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/role"
)

const (
	db       = id.DatabaseID("11111111-1111-4111-8111-111111111111")
	op       = id.OperationID("22222222-2222-4222-8222-222222222222")
	username = "pgh_11111111111141118111111111111111_c1"
	legacy   = "pgh_11111111111141118111111111111111_l1"
)

var (
	until    = time.Date(2026, 12, 1, 12, 30, 0, 123456789, time.FixedZone("CET", 3600))
	verifier = "SCRAM-SHA-256$4096:c2FsdA==$" + strings.Repeat("a", 44) + ":" + strings.Repeat("b", 44)
)

func names() database.Names { return database.RoleNames(db, "orders") }

var (
	backupKey = bytes.Repeat([]byte{7}, backup.KeyBytes)
	asSecret  = base64.StdEncoding.EncodeToString(backupKey)
)

func ensure() command.EnsureDatabase {
	return command.EnsureDatabase{
		DatabaseID: db, Name: "orders", RoleModel: database.Managed, ConnectionCap: 20, BackupKey: backupKey,
		Logins: []command.Login{
			{Login: database.RuntimeLogin, Username: names().Runtime, Verifier: verifier, Password: "pw-rt"},
			{Login: database.ReadonlyLogin, Username: names().Readonly, Verifier: verifier},
			{Login: database.OwnerLogin, Username: "orders", Verifier: verifier, Password: "pw"},
		},
	}
}

// closed is a database that a clone begins with.
func closed() command.EnsureDatabase {
	return command.EnsureDatabase{
		DatabaseID: db, Name: "shop", RoleModel: database.SingleLogin, Closed: true, BackupKey: backupKey,
		Logins: []command.Login{{Login: database.OwnerLogin, Username: "shop", Verifier: verifier}},
	}
}

func networks(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// all is every command, with what agents have of it in their ledgers: none of that may ever change, not by a byte.
var all = []struct {
	command        command.Command
	step, resource string
	payload        string
	secrets        map[string]string
}{
	{
		ensure(), "database.ensure", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","name":"orders","roleModel":"managed","connectionCap":20,"logins":[` +
			`{"login":"owner","username":"orders","verifier":"` + verifier + `"},` +
			`{"login":"readonly","username":"` + names().Readonly + `","verifier":"` + verifier + `"},` +
			`{"login":"runtime","username":"` + names().Runtime + `","verifier":"` + verifier + `"}]}`,
		map[string]string{"orders": "pw", names().Runtime: "pw-rt", "backup key": asSecret},
	},
	{
		closed(), "clone.ensure", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","name":"shop","roleModel":"single_login","connectionCap":0,"logins":[` +
			`{"login":"owner","username":"shop","verifier":"` + verifier + `"}],"closed":true}`,
		map[string]string{"backup key": asSecret},
	},
	{
		command.SetAccess{DatabaseID: db, Generation: 7, Open: true, Disconnect: true}, "database.access", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":true,"disconnect":true}`, nil,
	},
	{
		command.SetAllowlist{
			DatabaseID: db, Generation: 7, Networks: networks("2001:db8::/32", "10.0.0.0/8", "9.0.0.0/8", "10.0.0.0/8"),
		},
		"database.allowlist", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","networks":["10.0.0.0/8","2001:db8::/32","9.0.0.0/8"]}`, nil,
	},
	{
		command.SetAllowlist{DatabaseID: db, Generation: 7}, "database.allowlist", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","networks":[]}`, nil,
	},
	{
		command.Configure{
			DatabaseID: db, Generation: 7, Timeouts: &command.Timeouts{StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000},
			ReadOnly: true,
		},
		"database.configure", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","timeouts":{"statementMs":60000,"lockMs":10000,"idleInTransactionMs":30000},` +
			`"readOnly":true,"closed":false}`, nil,
	},
	{
		command.Configure{DatabaseID: db, Generation: 7, Closed: true}, "database.configure", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","timeouts":null,"readOnly":false,"closed":true}`, nil,
	},
	{
		command.PrepareRole{DatabaseID: db, Username: username, Generation: 7, AccessProfile: role.ReadWrite, ConnectionLimit: 3},
		"prepared", "database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"prepared","accessProfile":"read_write",` +
			`"connectionLimit":3}`, nil,
	},
	{
		command.EnsureOverlay{DatabaseID: db}, "overlay.ensure", "database/" + string(db) + "/overlay",
		`{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.PrepareRole{DatabaseID: db, Username: legacy, Generation: 7, AccessProfile: role.ReadOnly, ConnectionLimit: 20},
		"prepared", "database/" + string(db) + "/login/" + legacy,
		`{"databaseId":"` + string(db) + `","username":"` + legacy + `","want":"prepared","accessProfile":"read_only",` +
			`"connectionLimit":20}`, nil,
	},
	{
		command.AdmitRole{
			DatabaseID: db, Username: username, Generation: 7, AccessProfile: role.Custom, ConnectionLimit: 3, Verifier: verifier,
			ValidUntil: &until, Password: "pw",
		},
		"open", "database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"open","accessProfile":"custom","connectionLimit":3,` +
			`"verifier":"` + verifier + `","validUntil":"2026-12-01T11:30:00.123456Z"}`, map[string]string{"new": "pw"},
	},
	{
		command.AdmitRole{
			DatabaseID: db, Username: username, Generation: 7, AccessProfile: role.Custom, ConnectionLimit: 3, Verifier: verifier,
			Stopped: true, Password: "pw",
		},
		"open", "database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"open","accessProfile":"custom","connectionLimit":3,` +
			`"verifier":"` + verifier + `","stopped":true}`, map[string]string{"new": "pw"},
	},
	{
		command.ChangeLogin{
			DatabaseID: db, Username: "orders", Generation: 7, Want: role.Rotation, CredentialGeneration: 2, Verifier: verifier,
			ValidUntil: &until, NewPassword: "pw", OldPassword: "old",
		},
		"rotate", "database/" + string(db) + "/login/orders",
		`{"databaseId":"` + string(db) + `","username":"orders","want":"rotate","verifier":"` + verifier +
			`","validUntil":"2026-12-01T11:30:00.123456Z","credentialGeneration":2}`, map[string]string{"new": "pw", "old": "old"},
	},
	{
		command.ChangeLogin{
			DatabaseID: db, Username: username, Generation: 7, Want: role.Revocation, CredentialGeneration: 3, OldPassword: "old",
		},
		"revoke", "database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"revoke","credentialGeneration":3}`,
		map[string]string{"old": "old"},
	},
	{
		command.ChangeLogin{DatabaseID: db, Username: username, Generation: 7, Want: role.Expiry}, "expire",
		"database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"expire"}`, nil,
	},
	{
		command.RemoveRole{DatabaseID: db, Username: username, Generation: 7}, "remove",
		"database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"remove"}`, nil,
	},
	{
		command.RemoveRole{DatabaseID: db, Username: username, Generation: 7, AccountDatabases: []id.DatabaseID{other, db, other}},
		"remove", "database/" + string(db) + "/login/" + username,
		`{"databaseId":"` + string(db) + `","username":"` + username + `","want":"remove","accountDatabases":["` + string(db) + `","` +
			string(other) + `"]}`, nil,
	},
	{
		command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Verify: true}, "backup.run", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz","verify":true}`, nil,
	},
	{
		command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Passing: true}, "clone.dump", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz","verify":false,"passing":true}`, nil,
	},
	{
		command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", Verify: true, ForDeletion: true}, "delete.dump",
		"database/" + string(db),
		`{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz","verify":true,"forDeletion":true}`, nil,
	},
	{
		command.Isolate{DatabaseID: db}, "database.isolate", "database/" + string(db), `{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.Rejoin{DatabaseID: db, Open: true}, "database.rejoin", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":true}`, nil,
	},
	{
		command.Purge{DatabaseID: db}, "database.purge", "database/" + string(db), `{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.ChangeExtension{DatabaseID: db, Extension: extension.PgTrgm, Change: extension.Upgrade, Version: "1.6"},
		"extension.change", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","extension":"pg_trgm","change":"upgrade","version":"1.6"}`, nil,
	},
	{
		command.QualifyExtension{Extension: extension.PgCrypto, Version: "1.3"}, "extension.qualify", "extension/pgcrypto",
		`{"extension":"pgcrypto","version":"1.3"}`, nil,
	},
	{
		command.Load{
			DatabaseID: db, Source: command.Source{
				DatabaseID: other, Filename: "20261121_065347.sql.gz", Passing: true, ManifestSHA256: strings.Repeat("0f", 32),
			},
			Names:   []command.Renaming{{From: "shop", To: "orders"}, {From: "pgh_a_rt", To: "pgh_b_rt"}},
			Compare: true,
		},
		"restore.load", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","source":{"databaseId":"` + string(other) + `","filename":"20261121_065347.sql.gz",` +
			`"passing":true,"manifestSha256":"` + strings.Repeat("0f", 32) + `"},"names":[{"from":"pgh_a_rt","to":"pgh_b_rt"},` +
			`{"from":"shop","to":"orders"}],"compare":true}`, nil,
	},
	{
		command.Load{DatabaseID: db, Source: command.Source{DatabaseID: db, Filename: "20261121_065347.sql.gz"}},
		"restore.load", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","source":{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz",` +
			`"manifestSha256":""},"names":[],"compare":false}`, nil,
	},
	{
		command.Load{
			DatabaseID: db, Compare: true, Rehearsal: true, Moving: true,
			Source: command.Source{DatabaseID: db, Filename: "20261121_065347.sql.gz", Passing: true, AtPeer: true},
			Peer:   command.Peer{URL: "https://10.0.0.2:6433", CA: "PEM", Token: token},
		},
		"restore.load", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","source":{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz",` +
			`"passing":true,"atPeer":true,"manifestSha256":""},"names":[],"compare":true,"rehearsal":true,"moving":true}`,
		map[string]string{"peer url": "https://10.0.0.2:6433", "peer ca": "PEM", "peer token": token},
	},
	{
		command.Load{DatabaseID: db, Source: command.Source{
			DatabaseID: db, Upload: id.UploadID(other), SizeBytes: 10_737_418_240, SHA256: strings.Repeat("0f", 32), MaxBytes: 5,
			AcceptIncomplete: true,
		}},
		"restore.load", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","source":{"databaseId":"` + string(db) + `","filename":"","manifestSha256":"",` +
			`"upload":"` + string(other) + `","sizeBytes":10737418240,"sha256":"` + strings.Repeat("0f", 32) +
			`","maxBytes":5,"acceptIncomplete":true},` +
			`"names":[],"compare":false}`, nil,
	},
	{
		command.Switch{DatabaseID: db, Open: true}, "restore.switch", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":true}`, nil,
	},
	{
		command.Switch{DatabaseID: db, Passwords: []command.Password{{Username: "orders", Verifier: verifier, Generation: 2}}},
		"restore.switch", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":false,"passwords":[{"username":"orders","verifier":"` + verifier +
			`","generation":2}]}`, nil,
	},
	{
		command.Discard{DatabaseID: db}, "restore.discard", "database/" + string(db),
		`{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.Switch{DatabaseID: db, Moving: true}, "move.switch", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":false,"moving":true}`, nil,
	},
	{
		command.Part{DatabaseID: db, Closed: true}, "move.part", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","closed":true}`, nil,
	},
	{
		command.Take{DatabaseID: db, Parted: command.Parted{
			Position: "16/B374D848", Sequences: []command.Sequence{{Schema: "public", Name: "Orders_id_seq", Last: 7, Called: true}},
		}},
		"move.take", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","parted":{"position":"16/B374D848","sequences":[{"schema":"public",` +
			`"name":"Orders_id_seq","last":7,"called":true}]}}`, nil,
	},
	{
		command.Serve{DatabaseID: db, Open: true, Generation: 4, Roles: []command.AdmitRole{{
			DatabaseID: db, Username: username, AccessProfile: role.ReadOnly, ConnectionLimit: 3, Verifier: verifier,
		}}, Passwords: []command.Password{{Username: "orders", Verifier: verifier, Generation: 2}}},
		"move.serve", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","open":true,"roles":[{"databaseId":"` + string(db) + `","username":"` + username +
			`","want":"open","accessProfile":"read_only","connectionLimit":3,"verifier":"` + verifier + `"}],"passwords":[{` +
			`"username":"orders","verifier":"` + verifier + `","generation":2}]}`, nil,
	},
	{
		command.Depart{DatabaseID: db}, "move.depart", "database/" + string(db), `{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.Leave{DatabaseID: db, Kept: []backup.Filename{"20261121_065347.sql.gz"}}, "move.leave", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","kept":["20261121_065347.sql.gz"]}`, nil,
	},
	{
		command.Forward{
			DatabaseID: db, Name: "orders", Host: "db2.example.com", Port: 6432, CA: "pem", ConnectionCap: 20, Until: at, Generation: 3,
			Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Logins:   []command.Forwarding{{Username: "orders", Verifier: verifier}},
		},
		"forward.set", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","name":"orders","host":"db2.example.com","port":6432,"ca":"pem","connectionCap":20,` +
			`"networks":["10.0.0.0/8"],"logins":[{"username":"orders"}],"until":"2026-12-01T11:30:00Z"}`,
		map[string]string{"orders": verifier},
	},
	{
		command.EndForward{DatabaseID: db, Generation: 4}, "forward.end", "database/" + string(db),
		`{"databaseId":"` + string(db) + `"}`, nil,
	},
	{
		command.Welcome{DatabaseID: db, From: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, Generation: 5}, "forward.welcome",
		"database/" + string(db), `{"databaseId":"` + string(db) + `","from":["192.0.2.7"]}`, nil,
	},
	{
		command.Rescue{
			DatabaseID: db, At: time.Date(2026, 12, 1, 11, 30, 0, 123_456_000, time.UTC), MaxBytes: 7,
			Tables: []recovery.Table{{Schema: "public", Name: "Orders"}},
		},
		"moment.rescue", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","at":"2026-12-01T11:30:00.123456Z","tables":[{"schema":"public","name":"Orders"}],` +
			`"maxBytes":7}`, nil,
	},
	{
		command.CompareMoments{DatabaseID: db, From: at, To: at.Add(time.Second)}, "moment.compare", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","from":"2026-12-01T11:30:00Z","to":"2026-12-01T11:30:01Z"}`, nil,
	},
	{
		command.FindMoment{
			DatabaseID: db, From: at, To: at.Add(time.Second),
			Question: recovery.Question{Query: "SELECT 'a'", Until: "< 1", Key: make([]byte, recovery.KeyBytes)},
			Gaps:     []recovery.Gap{{From: at, To: at.Add(time.Second), Reason: recovery.NotArchived}},
		},
		"moment.find", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","from":"2026-12-01T11:30:00Z",` +
			`"to":"2026-12-01T11:30:01Z","gaps":[{"from":"2026-12-01T11:30:00Z","to":"2026-12-01T11:30:01Z",` +
			`"reason":"not_archived"}]}`,
		map[string]string{"query": "SELECT 'a'", "until": "< 1", "key": base64.StdEncoding.EncodeToString(make([]byte, 32))},
	},
	{
		command.AdmitPeer{DatabaseID: db, TokenSHA256: command.HashToken(token), Generation: 2}, "peer.admit", "database/" + string(db),
		`{"databaseId":"` + string(db) + `","tokenSha256":"` + command.HashToken(token) + `"}`, nil,
	},
	{command.Close{OperationID: op}, "operation.close", "operation/" + string(op), `{}`, nil},
}

const token = "a token of 32 characters or more"

var at = time.Date(2026, 12, 1, 11, 30, 0, 0, time.UTC)

const other = id.DatabaseID("99999999-9999-4999-8999-999999999999")

// Whoever changes one of these raises command.Protocol, once a release.
func TestCommandsAsAgentsKnowThem(t *testing.T) {
	for _, c := range all {
		payload, err := json.Marshal(c.command)
		if err != nil || string(payload) != c.payload {
			t.Errorf("%T has the payload\n%s (%v), want\n%s", c.command, payload, err, c.payload)
		}
		if step := command.Step(c.command); step != c.step || c.command.About().Resource != c.resource {
			t.Errorf("%T is step %s of %s", c.command, step, c.command.About().Resource)
		}
		secrets := command.Secrets(c.command)
		if len(secrets)+len(c.secrets) > 0 && !reflect.DeepEqual(secrets, c.secrets) {
			t.Errorf("%T has the secrets %v", c.command, secrets)
		}
		if err := c.command.Check(); err != nil {
			t.Errorf("%T: %v", c.command, err)
		}
	}
}

// What none of the payloads above has is not pinned: a field that is left out where it is zero is, by one that sets it.
func TestFieldsThatAreLeftOut(t *testing.T) {
	c := command.Backup{DatabaseID: db, Filename: "20261121_065347.sql.gz", MaxBytes: 7}
	payload, err := json.Marshal(c)
	want := `{"databaseId":"` + string(db) + `","filename":"20261121_065347.sql.gz","verify":false,"maxBytes":7}`
	if err != nil || string(payload) != want {
		t.Errorf("%s, %v", payload, err)
	}
}

// What an agent has received is what was sent, and has the same payload.
func TestCommandsAsReceived(t *testing.T) {
	for _, c := range all {
		received := reflect.New(reflect.TypeOf(c.command))
		if err := json.Unmarshal([]byte(c.payload), received.Interface()); err != nil {
			t.Fatalf("%T: %v", c.command, err)
		}
		command.Receive(received.Interface(), command.Envelope{
			OperationID: op, Generation: c.command.About().Generation, Secrets: c.secrets,
		})
		got := received.Elem().Interface().(command.Command)
		again, err := json.Marshal(got)
		if err != nil || string(again) != c.payload {
			t.Errorf("%T again: %s (%v)", got, again, err)
		}
		if got.About().Generation != c.command.About().Generation || got.About().Resource != c.resource || command.Step(got) != c.step {
			t.Errorf("%T is step %s of %s, generation %d", got, command.Step(got), got.About().Resource, got.About().Generation)
		}
		if diff := cmp.Diff(command.Secrets(c.command), command.Secrets(got)); diff != "" {
			t.Errorf("%T, secrets (-sent +received):\n%s", got, diff)
		}
		if !slices.Contains(command.Steps(got), c.step) {
			t.Errorf("%T has only the steps %v", got, command.Steps(got))
		}
	}
}

func TestAnotherStepsPayloadIsNoCommand(t *testing.T) {
	var c command.PrepareRole
	if err := json.Unmarshal([]byte(`{"want":"open"}`), &c); err == nil {
		t.Error("a payload of another step is taken")
	}
}

func TestBackupReportsOfOtherVersions(t *testing.T) {
	for text, want := range map[string]command.BackupReport{
		`{"state":"running","stage":"dumping","progress":140}`: {
			State: command.BackupRunning, Stage: "dumping", Progress: 100,
		},
		`{"state":"failed","stage":"","progress":0,"reason":"of tomorrow","message":"m"}`: {
			State: command.BackupFailed, Reason: command.ReasonFailed, Message: "m",
		},
		`{"state":"running","bytes":{"done":7,"total":9}}`:  {State: command.BackupRunning, Bytes: command.Bytes{Done: 7, Total: 9}},
		`{"state":"running","bytes":{"done":-1,"total":9}}`: {State: command.BackupRunning, Bytes: command.Bytes{Total: 9}},
		`{"state":"running","bytes":{"done":10,"total":9}}`: {State: command.BackupRunning, Bytes: command.Bytes{Done: 9, Total: 9}},
		`{"state":"running","bytes":{"done":1,"total":-9}}`: {State: command.BackupRunning},
	} {
		var got command.BackupReport
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %+v (%v)", text, got, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"state":"paused"}`), &command.BackupReport{}); err == nil {
		t.Error("a state of tomorrow is taken for one of today")
	}
}

// However much there is to note, the list has room for it, or says that it has not.
func TestNotesAreBounded(t *testing.T) {
	var all []string
	for i := range command.MostNotes + 7 {
		all = append(all, fmt.Sprint("n", i))
	}
	for n, want := range map[int]string{
		command.MostNotes - 1: "n98", command.MostNotes: "there is more to say than there is room for",
		command.MostNotes + 7: "there is more to say than there is room for",
	} {
		list := command.Noted(command.Noted(nil, all[:5]...), all[5:n]...)
		if len(list) != min(n, command.MostNotes) || list[5] != "n5" || list[len(list)-1] != want {
			t.Errorf("of %d: %d, %q", n, len(list), list)
		}
	}
}

func TestLoadReportsOfOtherVersions(t *testing.T) {
	note := strings.Repeat("é", 400)
	text := `{"state":"failed","stage":"polishing","progress":-3,"reason":"unknown","notes":["` + note + `"` +
		strings.Repeat(`,"n"`, 200) + `]}`
	var got command.LoadReport
	err := json.Unmarshal([]byte(text), &got)
	if err != nil || got.State != command.LoadFailed || got.Progress != 0 || got.Reason != command.ReasonFailed ||
		len(got.Notes) != command.MostNotes || got.Notes[0] != note[:500] {
		t.Errorf("%+v (%v)", got, err)
	}
	if err := json.Unmarshal([]byte(`{"state":"paused"}`), &command.LoadReport{}); err == nil {
		t.Error("a state of tomorrow is taken for one of today")
	}
}
