package agentclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	coredb "github.com/pgherd/pgherd/core/database"
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
	return agentOf(t, w.server(t)), got
}

func spec() command.EnsureDatabase {
	return command.EnsureDatabase{
		DatabaseID: database, Name: "orders", RoleModel: coredb.Managed, ConnectionCap: 20, BackupKey: make([]byte, 32),
		Logins: []command.Login{
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
	for _, c := range []command.Command{
		spec(), command.SetAccess{DatabaseID: database, Generation: 7, Open: true, Disconnect: true},
		command.ChangeLogin{
			DatabaseID: database, Username: "orders", Generation: 6, Want: role.Rotation, CredentialGeneration: 2,
			Verifier: "SCRAM-SHA-256$2", NewPassword: "pw-new", OldPassword: "pw-old",
		},
		command.Close{OperationID: fence.OperationID},
	} {
		check.Must(a.Do(ctx, fence, c))(t)
	}
	allowlist := command.SetAllowlist{DatabaseID: database, Generation: 5, Networks: networks}
	check.NoError(t, ports.Tell(ctx, a, ports.Fence{}, allowlist))
	const db = `"databaseId":"11111111-1111-4111-8111-111111111111"`
	want := []protocol.Command{
		sent("database.ensure", fence, 1, `{`+db+`,"name":"orders","roleModel":"managed","connectionCap":20,"logins":[`+
			`{"login":"owner","username":"orders","verifier":"SCRAM-SHA-256$1"},`+
			`{"login":"readonly","username":"pgh_1_ro","verifier":"SCRAM-SHA-256$\u003c3\u003e\u0026"},`+
			`{"login":"runtime","username":"pgh_1_rt","verifier":"SCRAM-SHA-256$2"}]}`),
		sent("database.access", fence, 7, `{`+db+`,"open":true,"disconnect":true}`),
		sent("login.ensure", fence, 6, `{`+db+`,"username":"orders","want":"rotate","verifier":"SCRAM-SHA-256$2",`+
			`"credentialGeneration":2}`),
		sent("operation.close", fence, 1, `{}`),
		sent("database.allowlist", ports.Fence{}, 5, `{`+db+`,"networks":["10.0.0.0/8","2001:db8::/32"]}`),
	}
	want[0].Secrets = map[string]string{
		"orders": "pw-of-owner", "pgh_1_rt": "pw-of-runtime", "backup key": strings.Repeat("A", 43) + "=",
	}
	want[2].Step, want[2].Resource = "rotate", want[2].Resource+"/login/orders"
	want[2].Secrets = map[string]string{"new": "pw-new", "old": "pw-old"}
	want[3].Resource = "operation/22222222-2222-4222-8222-222222222222"
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func sent(kind command.Kind, f ports.Fence, generation int64, payload string) protocol.Command {
	return protocol.Command{
		Kind: kind, OperationID: string(f.OperationID), Epoch: f.Epoch, Step: string(kind),
		Resource: "database/" + string(database), Generation: generation,
		PayloadHash: protocol.Hash([]byte(payload)), Payload: json.RawMessage(payload),
	}
}

func TestPasswordsStandInSecretsOnly(t *testing.T) {
	a, got := recorder(t, "null")
	check.NoError(t, ports.Tell(brief(t), a, fence, spec()))
	c := (*got)[0]
	c.Secrets = nil
	raw, err := json.Marshal(c)
	if err != nil || strings.Contains(string(raw), "pw-of-") {
		t.Errorf("a password stands outside of secrets: %s (%v)", raw, err)
	}
}

func TestABackupReportAsReceived(t *testing.T) {
	a, got := recorder(t, `{"state":"done","stage":"verified","progress":100,"sizeBytes":5,"checksumSha256":"ab",`+
		`"manifestSha256":"cd",`+
		`"verifiedAt":"2026-11-21T06:53:47Z","roleManifest":true}`)
	report := check.Must(ports.Do(brief(t), a, fence, command.Backup{DatabaseID: database, Filename: filename, Verify: true}))(t)
	at := time.Date(2026, 11, 21, 6, 53, 47, 0, time.UTC)
	want := command.BackupReport{
		State: command.BackupDone, Stage: "verified", Progress: 100, SizeBytes: 5, ChecksumSHA256: "ab", ManifestSHA256: "cd",
		VerifiedAt: &at, RoleManifest: true,
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	command := sent("backup.run", fence, 1,
		`{"databaseId":"11111111-1111-4111-8111-111111111111","filename":"20261121_065347.sql.gz","verify":true}`)
	if diff := cmp.Diff([]protocol.Command{command}, *got); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}
