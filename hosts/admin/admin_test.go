package admin_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// console is an operator at a terminal.
type console struct {
	t            *testing.T
	url, keyring string
}

func newConsole(t *testing.T) console {
	t.Helper()
	url := clustertest.NewDatabase(t).URL
	check.NoError(t, postgres.Migrate(t.Context(), url))
	c := console{t: t, url: url, keyring: filepath.Join(t.TempDir(), "keyring.json")}
	c.does("secrets", "init")
	return c
}

func (c console) run(args ...string) (string, error) {
	cmd, out := admin.Command(), &bytes.Buffer{}
	cmd.SetArgs(append(args, "--metadata-url="+c.url, "--keyring-file="+c.keyring))
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(c.t.Context())
	return out.String(), err
}

// does runs a command that works, and returns what it prints with --json.
func (c console) does(args ...string) map[string]any {
	c.t.Helper()
	out, err := c.run(append(args, "--json")...)
	if err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		c.t.Fatalf("%v prints no JSON object: %s", args, out)
	}
	return answer
}

// refuses runs a command that must fail, saying why.
func (c console) refuses(want string, args ...string) {
	c.t.Helper()
	out, err := c.run(args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		c.t.Errorf("%v: want an error with %q, got %v\n%s", args, want, err, out)
	}
}

func text(t *testing.T, answer map[string]any, field string) string {
	t.Helper()
	v, ok := answer[field].(string)
	if !ok || v == "" {
		t.Fatalf("no %s in %v", field, answer)
	}
	return v
}

func TestAnOperatorMakesAccountsAndKeys(t *testing.T) {
	c := newConsole(t)
	made := c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro")
	account := text(t, made, "accountId")
	text(t, made, "userId")
	c.refuses("email", "account", "create", "--email=A@example.com", "--name=A", "--plan=pro")
	c.refuses("plan", "account", "create", "--email=b@example.com", "--name=B", "--plan=gold")
	c.refuses("email", "account", "create", "--email=nobody", "--name=B", "--plan=pro")

	user := c.does("user", "create", "--email=c@example.com", "--name=C")
	if user["plan"] != "free" {
		t.Errorf("a user's own account is on %v", user["plan"])
	}

	key := c.does("key", "create", "--account="+account, "--label=deploy", "--scope=full")
	secret := text(t, key, "apiKey")
	if prefix := text(t, key, "prefix"); !strings.HasPrefix(secret, prefix+"_") || prefix != "pgh_"+text(t, key, "keyId") {
		t.Errorf("prefix %s of key %s", prefix, secret)
	}
	c.refuses("database", "key", "create", "--account="+account, "--label=x", "--scope=selected")
	c.refuses("scope", "key", "create", "--account="+account, "--label=x", "--scope=some")
	c.refuses("account", "key", "create", "--account=00000000-0000-4000-8000-000000000000", "--label=x")

	replaced := c.does("key", "replace", "--key="+text(t, key, "keyId"))
	if text(t, replaced, "apiKey") == secret {
		t.Error("replace returned the old key")
	}
	c.refuses("does not exist", "key", "replace", "--key="+text(t, key, "keyId"))
	c.does("key", "revoke", "--key="+text(t, replaced, "keyId"))
	c.refuses("is revoked", "key", "revoke", "--key="+text(t, replaced, "keyId"))

	out, err := c.run("key", "list", "--account="+account, "--json")
	if err != nil || !strings.Contains(out, `"lastUsedAt":null`) || strings.Contains(out, `"revokedAt":null`) ||
		!strings.Contains(out, `"email":"a@example.com"`) {
		t.Errorf("key list --json: %v\n%s", err, out)
	}
	out, err = c.run("key", "list", "--account="+account)
	if strings.Contains(out, "nil") {
		t.Error(out)
	}
	if err != nil || !strings.Contains(out, "deploy") || strings.Contains(out, secret) {
		t.Errorf("key list: %v\n%s", err, out)
	}
}

func TestAnOperatorChangesWhatAPlanAllows(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	changed := c.does("account", "set", "--account="+account, "--max-databases=3", "--credential-validity=1h")
	if changed["maxDatabases"] != 3.0 || changed["credentialValidity"] != "1h0m0s" || changed["connectionCap"] != 60.0 {
		t.Errorf("got %v", changed)
	}
	changed = c.does("account", "set", "--account="+account, "--max-databases=-1", "--plan=business")
	if changed["maxDatabases"] != 100.0 || changed["plan"] != "business" || changed["credentialValidity"] != "1h0m0s" {
		t.Errorf("got %v", changed)
	}
	for _, n := range []string{"-2", "1000001", "99999999999999"} {
		c.refuses("maxDatabases: must be 0 to 1000000", "account", "set", "--account="+account, "--max-databases="+n)
	}
	for _, n := range []string{"0", "100001"} {
		c.refuses("connectionCap: must be 1 to 100000", "account", "set", "--account="+account, "--connection-cap="+n)
	}
	for _, n := range []string{"-2", "36501"} {
		c.refuses("backupDays: must be 1 to 36500", "account", "set", "--account="+account, "--backup-days="+n)
	}
	for _, n := range []string{"0", "-2", "1025TiB"} {
		c.refuses("databaseBytes: must be 1 to 1125899906842624", "account", "set", "--account="+account, "--database-bytes="+n)
		c.refuses("backupBytes: must be 1 to 1125899906842624", "account", "set", "--account="+account, "--backup-bytes="+n)
	}
	changed = c.does("account", "set", "--account="+account, "--database-bytes=3GiB", "--backup-bytes=7")
	if changed["databaseBytes"] != 3.0*(1<<30) || changed["backupBytes"] != 7.0 {
		t.Error("bytes:", changed)
	}
	changed = c.does("account", "set", "--account="+account, "--database-bytes=-1", "--backup-bytes=-1")
	if changed["databaseBytes"] != 200.0*(1<<30) || changed["backupBytes"] != 2000.0*(1<<30) {
		t.Error("the plan's own bytes:", changed)
	}
	for _, short := range []string{"1s", "4m59.999s", "-1h"} {
		c.refuses("credentialValidity: must be at least 5m0s", "account", "set", "--account="+account, "--credential-validity="+short)
	}
	for given, want := range map[string]string{"5m": "5m0s", "0": "0s"} {
		changed = c.does("account", "set", "--account="+account, "--credential-validity="+given)
		if changed["credentialValidity"] != want {
			t.Errorf("a validity of %s: %v", given, changed)
		}
	}
}

func TestAnOperatorMakesNamespacesAndCIKeys(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	namespace := text(t, c.does("ci-namespace", "create", "--account="+account, "--name=web"), "namespaceId")
	c.refuses("name", "ci-namespace", "create", "--account="+account, "--name=web")
	if key := text(t, c.does("ci-key", "create", "--namespace="+namespace), "apiKey"); !strings.HasPrefix(key, "pghci_") {
		t.Errorf("got %s", key)
	}
}

func TestAnOperatorRegistersServers(t *testing.T) {
	c := newConsole(t)
	add := []string{
		"server", "add", "--name=db1", "--agent-url=https://127.0.0.1:8090", "--agent-secret=0123456789abcdef",
		"--public-host=db1.example.com", "--capacity=5", "--connections=100",
	}
	server := text(t, c.does(add...), "serverId")
	c.refuses("name", add...)
	c.refuses("agentUrl", "server", "add", "--name=x", "--agent-url=http://127.0.0.1", "--agent-secret=s", "--public-host=h")
	c.refuses("secret", "server", "add", "--name=x", "--agent-url=https://127.0.0.1", "--public-host=h")
	silent := []string{
		"server", "add", "--name=x", "--agent-url=https://127.0.0.1:1", "--agent-secret=0123456789abcdef", "--public-host=h",
	}
	c.refuses("connections: must be 0-262143", append(silent, "--connections=-1")...)
	if out, err := c.run(silent...); err != nil || !strings.Contains(out, "pgherd admin server set --server ") {
		t.Errorf("a server whose agent does not answer: %v\n%s", err, out)
	}
	c.does("server", "set", "--server="+server, "--connections=250")
	if got := c.does("server", "set", "--server="+server, "--capacity=7"); got["connections"] != 250.0 || got["capacity"] != 7.0 {
		t.Errorf("got %v", got)
	}
	c.refuses("capacity: must be at least 1", "server", "set", "--server="+server, "--capacity=0")
	if got := c.does("server", "disable", "--server="+server); got["enabled"] != false {
		t.Errorf("got %v", got)
	}
	out, err := c.run("server", "list")
	if err != nil || !strings.Contains(out, "db1.example.com") || strings.Contains(out, "0123456789abcdef") {
		t.Errorf("server list: %v\n%s", err, out)
	}
}

func TestAnOperatorQualifiesExtensions(t *testing.T) {
	c := newConsole(t)
	server := text(t, c.does("server", "add", "--name=db1", "--agent-url=https://127.0.0.1:1",
		"--agent-secret=0123456789abcdef", "--public-host=h", "--connections=0"), "serverId")
	c.refuses("server db1: citext: the agent cannot be reached", "extensions", "qualify")
	c.refuses("server db1: citext: the agent cannot be reached", "extensions", "qualify", "--server="+server)
	c.refuses("server: must be a lowercase UUID", "extensions", "qualify", "--server=x")
	c.refuses("server: does not exist", "extensions", "list", "--server=00000000-0000-4000-8000-000000000000")
	out, err := c.run("extensions", "list", "--json")
	if err != nil || strings.Count(out, `"server":"db1"`) != 3 || strings.Count(out, `"qualified":false,"version":null`) != 3 {
		t.Errorf("extensions list: %v\n%s", err, out)
	}
}

func TestAnOperatorKeepsTheCertificateKeys(t *testing.T) {
	c := newConsole(t)
	c.refuses("key: none signs; pgherd admin certificate-key create makes one", "certificate-key", "rotate")
	first := text(t, c.does("certificate-key", "create"), "keyId")
	c.refuses("key: another one signs already; pgherd admin certificate-key rotate replaces it", "certificate-key", "create")
	if got := c.does("secrets", "rotate"); got["resealed"] != 1.0 {
		t.Errorf("got %v", got)
	}
	c.does("secrets", "prune")
	c.refuses("key: must be a lowercase UUID", "certificate-key", "rotate", "--key=first")
	rotated := c.does("certificate-key", "rotate", "--key="+first)
	c.refuses("key: "+first+" does not sign", "certificate-key", "rotate", "--key="+first)
	if rotated["replaces"] != first || rotated["retiredAt"] != nil {
		t.Errorf("got %v", rotated)
	}
	second := text(t, rotated, "keyId")
	out, err := c.run("certificate-key", "list", "--json")
	if err != nil || strings.Index(out, second) > strings.Index(out, first) || strings.Count(out, `"retiredAt":null`) != 1 ||
		!strings.Contains(out, text(t, rotated, "publicKey")) {
		t.Errorf("certificate-key list: %v\n%s", err, out)
	}
	out, err = c.run("audit", "installation", "--json")
	if err != nil || !strings.Contains(out, `certificate_key.rotated","details":{"keyId":"`+second+`","retired":"`+first+`"}`) ||
		!strings.Contains(out, `certificate_key.created","details":{"keyId":"`+first+`"}`) {
		t.Errorf("audit installation: %v\n%s", err, out)
	}
	keyless := console{t: t, url: c.url}
	keyless.refuses("this command needs the key ring", "certificate-key", "rotate")
	if out, err := c.run("certificate-key", "list"); err != nil || !strings.Contains(out, second) {
		t.Errorf("certificate-key list: %v\n%s", err, out)
	}
}

// The private part is in no output and no table, but for what the key ring has sealed; after a rotation that is gone, too.
func TestThePrivatePartOfACertificateKeyIsSealed(t *testing.T) {
	c := newConsole(t)
	said := fmt.Sprint(c.does("certificate-key", "create"))
	db := check.Must(sql.Open("postgres", c.url))(t)
	defer db.Close()
	var key string
	var sealed []byte
	check.NoError(t, db.QueryRow("SELECT id, sealed_seed FROM certificate_keys").Scan(&key, &sealed))
	box := check.Must(secretbox.Load(c.keyring))(t)
	seed := check.Must(box.Open(sealed, "certificate-key/"+key))(t)
	if _, err := box.Open(sealed, "certificate-key/00000000-0000-4000-8000-000000000000"); err == nil {
		t.Error("it can be opened as another key's")
	}
	dump := func() (text string) {
		check.NoError(t, db.QueryRow(`SELECT string_agg(row, ' ') FROM (SELECT k::text AS row FROM certificate_keys k
			UNION ALL SELECT a::text FROM audit_entries a) rows`).Scan(&text))
		return text
	}
	said += dump() + fmt.Sprint(c.does("certificate-key", "rotate"))
	for _, hidden := range []string{hex.EncodeToString(seed), base64.StdEncoding.EncodeToString(seed), string(seed)} {
		if strings.Contains(said, hidden) {
			t.Errorf("the private part is in %q", said)
		}
	}
	if text := dump(); strings.Contains(text, hex.EncodeToString(sealed)) || !strings.Contains(text, key) {
		t.Errorf("after the rotation: %s", text)
	}
}

func TestAnOperatorChangesTheKeyRing(t *testing.T) {
	c := newConsole(t)
	c.does("server", "add", "--name=db1", "--agent-url=https://127.0.0.1:8090", "--agent-secret=0123456789abcdef",
		"--public-host=db1.example.com", "--connections=0")
	if got := c.does("secrets", "rotate"); got["resealed"] != 1.0 {
		t.Errorf("got %v", got)
	}
	c.does("secrets", "prune")
	c.refuses("exists", "secrets", "init")
}

func TestSwitchesAreNamedExactly(t *testing.T) {
	c := newConsole(t)
	c.does("feature", "enable", "clone")
	c.does("feature", "disable", "clone")
	c.refuses("feature", "feature", "enable", "clones")
	c.does("maintenance", "on")
	c.does("maintenance", "off")
	c.refuses("on or off", "maintenance", "maybe")
	c.refuses("route", "enroll", "--database=00000000-0000-4000-8000-000000000000", "--route=everything")
	c.refuses("database: does not exist", "enroll", "--database=00000000-0000-4000-8000-000000000000", "--route=all")
	c.refuses("OPERATION_NOT_FOUND", "operation", "show", "--operation=00000000-0000-4000-8000-000000000000")
}

func TestAnOperatorLooksForChanges(t *testing.T) {
	c := newConsole(t)
	nothing := "00000000-0000-4000-8000-000000000000"
	if out, err := c.run("change", "list", "--database="+nothing, "--json"); err != nil || strings.TrimSpace(out) != "[]" {
		t.Errorf("change list: %v\n%s", err, out)
	}
	end := []string{"change", "end", "--database=" + nothing, "--change=" + nothing}
	c.refuses("OPERATION_NOT_FOUND", append(end, "--reason=because")...)
	c.refuses("reason: must have 1-300 characters", append(end, "--reason= ")...)
	c.refuses(`"reason" not set`, end...)
	c.refuses("change: must be a lowercase UUID", "change", "end", "--database="+nothing, "--change=X", "--reason=because")
}

func TestAnUnknownCommandIsAnError(t *testing.T) {
	c := newConsole(t)
	c.refuses(`unknown command "accounts" for "admin"`, "accounts")
	c.refuses(`unknown command "creat" for "admin key"`, "key", "creat")
	if out, err := c.run("key"); err != nil || !strings.Contains(out, "replace") {
		t.Errorf("a group alone prints its help: %v\n%s", err, out)
	}
}

func TestASchemaThatIsMissingIsSaidPlainly(t *testing.T) {
	c := console{t: t, url: clustertest.NewDatabase(t).URL, keyring: filepath.Join(t.TempDir(), "none")}
	c.refuses("pgherd migrate", "feature", "enable", "clone")
}

// A server that does not answer is a difference, and its line says so.
func TestDoctorOfAServerThatIsAway(t *testing.T) {
	c := newConsole(t)
	if out, err := c.run("doctor"); err != nil || out != "" {
		t.Errorf("without a server: %v, %s", err, out)
	}
	made := c.does("server", "add", "--name=away", "--agent-url=https://127.0.0.1:1", "--agent-secret=shared",
		"--public-host=db.test", "--connections=0")
	out, err := c.run("doctor", "--json", "--patience=1ms")
	var list []map[string]any
	check.NoError(t, json.Unmarshal([]byte(out), &list))
	if err == nil || len(list) != 1 || list[0]["code"] != "server_unreachable" || list[0]["serverId"] != made["serverId"] {
		t.Errorf("%v, %s", err, out)
	}
	bare := c
	bare.keyring = ""
	if out, err := bare.run("doctor", "--patience=1ms"); err == nil || !strings.Contains(out, "needs the key ring") {
		t.Errorf("without the key ring: %v, %s", err, out)
	}
	if _, err := c.run("server", "disable", "--server", fmt.Sprint(made["serverId"])); err != nil {
		t.Error(err)
	}
	if out, err := c.run("doctor"); err != nil || out != "" {
		t.Errorf("without an enabled server: %v, %s", err, out)
	}
}
