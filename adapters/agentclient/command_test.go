package agentclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/agent/protocol"
	coredb "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// recorder keeps the commands that it gets and answers each with the same result.
func recorder(t *testing.T, result string) (ports.Agent, *[]protocol.Command) {
	t.Helper()
	got := &[]protocol.Command{}
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var c protocol.Command
		if err != nil || json.Unmarshal(body, &c) != nil || r.Method != "POST" || r.URL.Path != "/v1/commands" {
			t.Errorf("%s %s %s", r.Method, r.URL.Path, body)
		}
		if protocol.Hash(c.Payload) != c.PayloadHash {
			t.Errorf("%s: the hash is not that of the payload as sent", c.Kind)
		}
		*got = append(*got, c)
		answer(200, `{"result":`+result+`}`)(rw, r)
	})
	return agentOf(t, w.record(t)), got
}

func spec() ports.DatabaseSpec {
	return ports.DatabaseSpec{
		ID: database, Name: "orders", RoleModel: coredb.Managed, ConnectionCap: 20,
		Logins: []ports.LoginSpec{
			{Login: coredb.OwnerLogin, Username: "orders", Verifier: "SCRAM-SHA-256$1", Password: "pw-of-owner"},
			{Login: coredb.RuntimeLogin, Username: "pgh_1_rt", Verifier: "SCRAM-SHA-256$2", Password: "pw-of-runtime"},
			{Login: coredb.ReadonlyLogin, Username: "pgh_1_ro", Verifier: "SCRAM-SHA-256$<3>&"},
		},
	}
}

func TestCommandsAsSent(t *testing.T) {
	a, got := recorder(t, "null")
	ctx := brief(t)
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for _, err := range []error{
		a.EnsureDatabase(ctx, fence, spec()),
		a.SetAccess(ctx, fence, ports.AccessSpec{DatabaseID: database, Generation: 7, Open: true, Disconnect: true}),
		a.SetAllowlist(ctx, ports.AllowlistSpec{DatabaseID: database, Generation: 5, Networks: networks}),
		a.SetAllowlist(ctx, ports.AllowlistSpec{DatabaseID: database, Generation: 6}),
		a.Close(ctx, fence),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const db = `"databaseId":"11111111-1111-4111-8111-111111111111"`
	want := []protocol.Command{
		sent(protocol.EnsureDatabase, fence, 1, `{`+db+`,"name":"orders","roleModel":"managed","connectionCap":20,"logins":[`+
			`{"login":"owner","username":"orders","verifier":"SCRAM-SHA-256$1"},`+
			`{"login":"readonly","username":"pgh_1_ro","verifier":"SCRAM-SHA-256$\u003c3\u003e\u0026"},`+
			`{"login":"runtime","username":"pgh_1_rt","verifier":"SCRAM-SHA-256$2"}]}`),
		sent(protocol.SetAccess, fence, 7, `{`+db+`,"open":true,"disconnect":true}`),
		sent(protocol.SetAllowlist, ports.Fence{}, 5, `{`+db+`,"networks":["10.0.0.0/8","2001:db8::/32"]}`),
		sent(protocol.SetAllowlist, ports.Fence{}, 6, `{`+db+`,"networks":[]}`),
		sent(protocol.CloseOperation, fence, 1, `{}`),
	}
	want[0].Secrets = map[string]string{"orders": "pw-of-owner", "pgh_1_rt": "pw-of-runtime"}
	want[4].Resource = "operation/22222222-2222-4222-8222-222222222222"
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func sent(kind protocol.Kind, f ports.Fence, generation int64, payload string) protocol.Command {
	return protocol.Command{
		Kind: kind, OperationID: string(f.OperationID), Epoch: f.Epoch, Step: string(kind),
		Resource: "database/" + string(database), Generation: generation,
		PayloadHash: protocol.Hash([]byte(payload)), Payload: json.RawMessage(payload),
	}
}

// What agents have in their ledgers, and hash, stays as it is to the byte.
func TestCommandsAboutLoginsAsSent(t *testing.T) {
	a, got := recorder(t, "{}")
	ctx := brief(t)
	until := time.Date(2026, 12, 1, 12, 30, 0, 123456789, time.FixedZone("CET", 3600))
	spec := ports.RoleSpec{
		DatabaseID: database, Username: "pgh_1_c1", Generation: 4, AccessProfile: role.ReadWrite, ConnectionLimit: 3,
	}
	admission := spec
	admission.Verifier, admission.ValidUntil, admission.Password = "SCRAM-SHA-256$<1>", &until, "pw-new"
	rotation := ports.LoginChange{
		DatabaseID: database, Username: "orders", Generation: 6, Kind: role.Rotation, CredentialGeneration: 2,
		Verifier: "SCRAM-SHA-256$2", ValidUntil: &until, NewPassword: "pw-new", OldPassword: "pw-old",
	}
	revocation := ports.LoginChange{
		DatabaseID: database, Username: "pgh_1_c1", Generation: 7, Kind: role.Revocation, CredentialGeneration: 3, OldPassword: "pw-old",
	}
	expiry := ports.LoginChange{DatabaseID: database, Username: "pgh_1_c1", Generation: 8, Kind: role.Expiry}
	removal := ports.RoleRemoval{DatabaseID: database, Username: "pgh_1_c1", Generation: 9}
	removalOfMany := removal
	removalOfMany.AccountDatabases = []id.DatabaseID{"b", "a", "b"}
	_, rotated := a.ChangeLogin(ctx, fence, rotation)
	_, revoked := a.ChangeLogin(ctx, fence, revocation)
	_, expired := a.ChangeLogin(ctx, fence, expiry)
	_, removed := a.RemoveRole(ctx, fence, removal)
	_, removedOfMany := a.RemoveRole(ctx, fence, removalOfMany)
	for _, err := range []error{
		rotated, revoked, expired, removed, removedOfMany, a.PrepareRole(ctx, fence, spec), a.AdmitRole(ctx, fence, admission),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const db = `{"databaseId":"11111111-1111-4111-8111-111111111111",`
	const validity = `"validUntil":"2026-12-01T11:30:00.123456Z"`
	want := []protocol.Command{
		sentLogin("rotate", "orders", 6, db+`"username":"orders","want":"rotate","verifier":"SCRAM-SHA-256$2",`+
			validity+`,"credentialGeneration":2}`, "new", "pw-new", "old", "pw-old"),
		sentLogin("revoke", "pgh_1_c1", 7, db+`"username":"pgh_1_c1","want":"revoke","credentialGeneration":3}`, "old", "pw-old"),
		sentLogin("expire", "pgh_1_c1", 8, db+`"username":"pgh_1_c1","want":"expire"}`),
		sentLogin("remove", "pgh_1_c1", 9, db+`"username":"pgh_1_c1","want":"remove"}`),
		sentLogin("remove", "pgh_1_c1", 9, db+`"username":"pgh_1_c1","want":"remove","accountDatabases":["a","b"]}`),
		sentLogin("prepared", "pgh_1_c1", 4, db+`"username":"pgh_1_c1","want":"prepared","accessProfile":"read_write",`+
			`"connectionLimit":3}`),
		sentLogin("open", "pgh_1_c1", 4, db+`"username":"pgh_1_c1","want":"open","accessProfile":"read_write","connectionLimit":3,`+
			`"verifier":"SCRAM-SHA-256$\u003c1\u003e",`+validity+`}`, "new", "pw-new"),
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func sentLogin(step, username string, generation int64, payload string, secrets ...string) protocol.Command {
	c := sent("login.ensure", fence, generation, payload)
	c.Step, c.Resource = step, c.Resource+"/login/"+username
	for i := 0; i < len(secrets); i += 2 {
		if c.Secrets == nil {
			c.Secrets = map[string]string{}
		}
		c.Secrets[secrets[i]] = secrets[i+1]
	}
	return c
}

func TestTheOrderOfListsDoesNotChangeACommand(t *testing.T) {
	a, got := recorder(t, "null")
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")}
	turnedNetworks := []netip.Prefix{networks[1], networks[0], networks[1]}
	turned := spec()
	slices.Reverse(turned.Logins)
	for _, err := range []error{
		a.EnsureDatabase(brief(t), fence, spec()), a.EnsureDatabase(brief(t), fence, turned),
		a.SetAllowlist(brief(t), ports.AllowlistSpec{DatabaseID: database, Networks: networks}),
		a.SetAllowlist(brief(t), ports.AllowlistSpec{DatabaseID: database, Networks: turnedNetworks}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(*got); i += 2 {
		if diff := cmp.Diff((*got)[i], (*got)[i+1]); diff != "" {
			t.Errorf("the same command twice (-first +second):\n%s", diff)
		}
	}
}

func TestPasswordsStandInSecretsOnly(t *testing.T) {
	a, got := recorder(t, "null")
	if err := a.EnsureDatabase(brief(t), fence, spec()); err != nil {
		t.Fatal(err)
	}
	c := (*got)[0]
	c.Secrets = nil
	raw, err := json.Marshal(c)
	if err != nil || strings.Contains(string(raw), "pw-of-") {
		t.Errorf("a password stands outside of secrets: %s (%v)", raw, err)
	}
}

func TestABackupReportAsReceived(t *testing.T) {
	a, got := recorder(t, `{"state":"done","stage":"verified","progress":100,"sizeBytes":5,"checksumSha256":"ab",`+
		`"verifiedAt":"2026-11-21T06:53:47Z","roleManifest":true}`)
	report, err := a.Backup(brief(t), fence, ports.BackupSpec{DatabaseID: database, Filename: filename, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 6, 53, 47, 0, time.UTC)
	want := ports.BackupReport{
		State: ports.BackupDone, Stage: "verified", Progress: 100, SizeBytes: 5, ChecksumSHA256: "ab",
		VerifiedAt: &at, RoleManifest: true,
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	command := sent(protocol.RunBackup, fence, 1,
		`{"databaseId":"11111111-1111-4111-8111-111111111111","filename":"20261121_065347.sql.gz","verify":true}`)
	if diff := cmp.Diff([]protocol.Command{command}, *got); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}
