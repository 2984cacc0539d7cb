package admin_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	sample.Tests(6)
	os.Exit(clustertest.Main(m))
}

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
	out := &bytes.Buffer{}
	err := c.runTo(out, args...)
	return out.String(), err
}

func (c console) runTo(out io.Writer, args ...string) error {
	cmd := admin.Command()
	cmd.SetArgs(append(args, "--metadata-url="+c.url, "--keyring-file="+c.keyring))
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(c.t.Context())
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

func TestAnOperatorBoundsKeys(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	create := []string{"key", "create", "--account=" + account, "--label=deploy"}
	key := text(t, c.does(append(create, "--expires=90d", "--network=192.0.2.0/24,2001:db8::/32", "--network=10.0.0.1")...), "keyId")
	if listed := c.lists("key", "list", "--account="+account); len(listed) != 1 || listed[0]["expiresAt"] == nil ||
		fmt.Sprint(listed[0]["networks"]) != "[10.0.0.1/32 192.0.2.0/24 2001:db8::/32]" {
		t.Errorf("the keys are %v", listed)
	}
	set := c.does("key", "set", "--key="+key, "--expires=2031-03-01T00:00:00Z")
	if set["expiresAt"] != "2031-03-01T00:00:00Z" || fmt.Sprint(set["networks"]) != "[10.0.0.1/32 192.0.2.0/24 2001:db8::/32]" {
		t.Errorf("got %v", set)
	}
	set = c.does("key", "set", "--key="+key, "--network=any")
	if set["expiresAt"] != "2031-03-01T00:00:00Z" || set["networks"] != nil {
		t.Errorf("got %v", set)
	}
	key = text(t, c.does("key", "replace", "--key="+key, "--expires=never", "--network=10.0.0.0/8"), "keyId")
	if listed := c.lists("key", "list", "--account="+account); listed[0]["expiresAt"] != nil ||
		fmt.Sprint(listed[0]["networks"]) != "[10.0.0.0/8]" || listed[0]["keyId"] != key {
		t.Errorf("the keys are %v", listed)
	}
	for _, args := range [][]string{create, {"key", "set", "--key=" + key}, {"key", "replace", "--key=" + key}} {
		c.refuses("network: ", append(args, "--network=10.0.0.1/8")...)
		c.refuses("expires: must be never, a time from now as 90d", append(args, "--expires=soon")...)
	}
	c.refuses("at least one of the flags in the group [expires network] is required", "key", "set", "--key="+key)
}

func TestAnOperatorReadsTheLog(t *testing.T) {
	c := newConsole(t)
	account := text(t, c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro"), "accountId")
	made := c.does("key", "create", "--account="+account, "--label=deploy to production", "--expires=90d")
	c.does("account", "set", "--account="+account, "--max-databases=3")
	c.does("feature", "enable", "clone")
	lines := func(args ...string) (rows []map[string]any) {
		out, err := c.run(append([]string{"audit", "list", "--json-lines"}, args...)...)
		check.NoError(t, err)
		for line := range strings.Lines(out) {
			var row map[string]any
			check.NoError(t, json.Unmarshal([]byte(line), &row))
			rows = append(rows, row)
		}
		return rows
	}
	actions := func(rows []map[string]any) (list []string) {
		for _, row := range rows {
			list = append(list, row["action"].(string))
		}
		return list
	}
	ofAccount := lines("--account=" + account)
	if got := strings.Join(actions(ofAccount), " "); got != "account.changed api_key.created account.created" {
		t.Errorf("the account's log has %s", got)
	}
	newest := ofAccount[0]
	if details := newest["details"].(map[string]any); newest["accountId"] != account || newest["databaseId"] != nil ||
		details["maxDatabases"] != "as planned -> 3" || details["operator"] == nil {
		t.Errorf("got %v", newest)
	}
	if same := c.lists("audit", "list", "--account="+account); fmt.Sprint(same) != fmt.Sprint(ofAccount) {
		t.Errorf("with --json it is %v", same)
	}
	if got := strings.Join(actions(lines("--installation")), " "); got != "feature.enabled keyring.registered" {
		t.Errorf("the installation's log has %s", got)
	}
	second := text(t, ofAccount[1], "at")
	if got := strings.Join(actions(lines("--account="+account, "--until="+second)), " "); got != "account.created" {
		t.Errorf("until then there is %s", got)
	}
	if got := strings.Join(actions(lines("--account="+account, "--since="+second, "--limit=1")), " "); got != "account.changed" {
		t.Errorf("since then the newest is %s", got)
	}
	if empty := c.lists("audit", "list", "--account="+account, "--until=2020-01-01"); len(empty) != 0 {
		t.Errorf("before all that there is %v", empty)
	}
	out, err := c.run("audit", "list", "--account="+account)
	if err != nil || !strings.Contains(out, `label="deploy to production"`) || strings.Contains(out, text(t, made, "apiKey")) {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if named := c.lists("audit", "list", "--account=a@example.com"); len(named) != len(ofAccount) {
		t.Errorf("by the owner's address there are %v", named)
	}
	for _, flags := range [][]string{
		{}, {"--installation", "--account=" + account}, {"--account=" + account, "--database=" + account},
	} {
		c.refuses("takes one of --database, --account and --installation", append([]string{"audit", "list"}, flags...)...)
	}
	c.refuses("account: no account is called", "audit", "list", "--account=00000000-0000-4000-8000-000000000000")
	c.refuses("since: must be a time as 2026-03-01T00:00:00Z, or a day", "audit", "list", "--installation", "--since=yesterday")
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
	for flag, want := range map[string]string{
		"--max-databases=-2": "maxDatabases", "--connection-cap=0": "connectionCap", "--backup-days=-2": "backupDays",
		"--pitr-days=-2":     "pitrDays",
		"--database-bytes=0": "databaseBytes", "--backup-bytes=1025TiB": "backupBytes",
		"--credential-validity=1s": "credentialValidity",
	} {
		c.refuses(want+": must be", "account", "set", "--account="+account, flag)
	}
	changed = c.does("account", "set", "--account="+account, "--database-bytes=3GiB", "--backup-bytes=7")
	if changed["databaseBytes"] != 3.0*(1<<30) || changed["backupBytes"] != 7.0 {
		t.Error("bytes:", changed)
	}
	changed = c.does("account", "set", "--account="+account, "--database-bytes=-1", "--backup-bytes=-1")
	if changed["databaseBytes"] != 200.0*(1<<30) || changed["backupBytes"] != 2000.0*(1<<30) {
		t.Error("the plan's own bytes:", changed)
	}
	for given, want := range map[string]string{"5m": "5m0s", "0": "0s"} {
		changed = c.does("account", "set", "--account="+account, "--credential-validity="+given)
		if changed["credentialValidity"] != want {
			t.Errorf("a validity of %s: %v", given, changed)
		}
	}
}

func TestAnOperatorSuspendsAnAccount(t *testing.T) {
	c := newConsole(t)
	c.does("account", "create", "--email=a@example.com", "--name=A", "--plan=pro")
	const of = "--account=a@example.com"
	suspend, resume := []string{"account", "suspend", of}, []string{"account", "resume", of}
	c.refuses(`"reason" not set`, suspend...)
	c.refuses("reason: must", append(resume, "--reason= ")...)
	begun := c.does(append(suspend, "--reason=unpaid")...)
	if begun["suspendedFor"] != "unpaid" || begun["email"] != "a@example.com" || text(t, begun, "suspendedAt") == "" {
		t.Errorf("got %v", begun)
	}
	again := c.does(append(suspend, "--reason=abuse")...)
	listed := c.lists("account", "list")[0]
	for _, name := range []string{"suspendedAt", "suspendedFor"} {
		if again[name] != begun[name] || listed[name] != begun[name] {
			t.Errorf("%s: %v, then %v, listed as %v", name, begun[name], again[name], listed[name])
		}
	}
	if over := c.does(append(resume, "--reason=paid")...); over["suspendedAt"] != nil || over["suspendedFor"] != nil {
		t.Errorf("got %v", over)
	}
}

func TestAnOperatorRegistersServers(t *testing.T) {
	c := newConsole(t)
	add := []string{
		"server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:8090", "--agent-secret=" + agentSecret,
		"--public-host=db1.example.com", "--capacity=5", "--connections=100",
	}
	server := text(t, c.does(add...), "serverId")
	c.refuses("name", add...)
	c.refuses("agentUrl", "server", "add", "--name=x", "--agent-url=http://127.0.0.1", "--agent-secret=s", "--public-host=h")
	c.refuses("agentSecret", "server", "add", "--name=x", "--agent-url=https://127.0.0.1", "--public-host=h")
	silent := []string{
		"server", "add", "--unchecked", "--name=x",
		"--agent-url=https://127.0.0.1:1", "--agent-secret=" + agentSecret, "--public-host=h",
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
	if err != nil || !strings.Contains(out, "db1.example.com") || strings.Contains(out, agentSecret) {
		t.Errorf("server list: %v\n%s", err, out)
	}
}

func TestAnOperatorQualifiesExtensions(t *testing.T) {
	c := newConsole(t)
	server := text(t, c.does("server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:1",
		"--agent-secret="+agentSecret, "--public-host=h", "--connections=0"), "serverId")
	c.refuses("server db1: AGENT_ERROR: the agent of db1 does not say which PostgreSQL it has", "extensions", "qualify")
	c.refuses("the agent cannot be reached", "extensions", "qualify", "--server="+server)
	c.refuses(`server: no server is called "x"; pgherd admin server list`, "extensions", "qualify", "--server=x")
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
	c.does("secrets", "prune", "--settle=0s")
	c.refuses("key: must be a lowercase UUID", "certificate-key", "rotate", "--key=first")
	rotated := c.does("certificate-key", "rotate", "--key="+first)
	c.refuses("key: "+first+" does not sign", "certificate-key", "rotate", "--key="+first)
	c.refuses("key: "+text(t, rotated, "keyId")+" has signed only since", "certificate-key", "rotate")
	if rotated["replaces"] != first || rotated["retiredAt"] != nil {
		t.Errorf("got %v", rotated)
	}
	second := text(t, rotated, "keyId")
	out, err := c.run("certificate-key", "list", "--json")
	if err != nil || strings.Index(out, second) > strings.Index(out, first) || strings.Count(out, `"retiredAt":null`) != 1 ||
		!strings.Contains(out, text(t, rotated, "publicKey")) {
		t.Errorf("certificate-key list: %v\n%s", err, out)
	}
	keyless := console{t: t, url: c.url}
	keyless.refuses("this command needs the key ring", "certificate-key", "rotate", "--key="+second)
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
	said += dump() + fmt.Sprint(c.does("certificate-key", "rotate", "--key="+key))
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
	c.does("server", "add", "--unchecked", "--name=db1", "--agent-url=https://127.0.0.1:8090", "--agent-secret="+agentSecret,
		"--public-host=db1.example.com", "--connections=0")
	rotated := c.does("secrets", "rotate")
	if rotated["resealed"] != 2.0 { // its secret, and the key of its archive
		t.Errorf("got %v", rotated)
	}
	c.refuses("encrypts for less than 1m0s", "secrets", "prune")
	c.does("secrets", "prune", "--settle=0s")
	c.refuses("exists", "secrets", "init")

	c.refuses("none is staged; pgherd admin secrets stage makes one", "secrets", "promote")
	staged := c.does("secrets", "stage")
	if again := c.does("secrets", "stage"); again["staged"] != staged["staged"] || staged["staged"] == "" {
		t.Errorf("staged %v, then %v", staged, again)
	}
	c.does("secrets", "unstage")
	if keys := check.Must(check.Must(secretbox.Load(c.keyring))(t).Keys())(t).Keys; len(keys) != 1 {
		t.Errorf("the ring has %v", keys)
	}
	out, err := c.run("secrets", "keys", "--json")
	if err != nil || strings.Count(out, `"status":"retired"`) != 2 ||
		!strings.Contains(out, `{"key":"`+text(t, rotated, "primary")+`","status":"primary"`) {
		t.Errorf("secrets keys: %v\n%s", err, out)
	}
	if out, err := c.run("secrets", "hosts", "--json"); err != nil || strings.TrimSpace(out) != "[]" {
		t.Errorf("secrets hosts: %v\n%s", err, out)
	}
}

// Nothing suggests or makes another ring where there was one, and a command with another ring does nothing.
func TestNoSecondKeyRing(t *testing.T) {
	c := newConsole(t)
	lost := console{t: t, url: c.url, keyring: filepath.Join(t.TempDir(), "keyring.json")}
	lost.refuses("restore that from its backup", "secrets", "init")
	if _, err := os.Stat(lost.keyring); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second ring was made: %v", err)
	}
	check.Must(secretbox.Create(lost.keyring))(t)
	lost.refuses("does not have the key", "certificate-key", "create")
	lost.refuses("does not have the key", "secrets", "rotate")

	empty := clustertest.NewDatabase(t).URL
	first := console{t: t, url: empty, keyring: filepath.Join(t.TempDir(), "keyring.json")}
	first.does("secrets", "init") // before the schema is there
	check.NoError(t, postgres.Migrate(t.Context(), empty))
	first.does("certificate-key", "create")
	lost.url = empty
	lost.refuses("does not have the key", "certificate-key", "rotate")
}

// An init that is cut off, by then with a ring on which everything depends or not, leaves it, and says how to go on.
func TestAnInitThatIsCutOff(t *testing.T) {
	const goOn = "pgherd admin secrets keys registers the ring of that file"
	url := clustertest.NewDatabase(t).URL
	check.NoError(t, postgres.Migrate(t.Context(), url))
	c := console{t: t, url: url, keyring: filepath.Join(t.TempDir(), "keyring.json")}
	err := c.runTo(full{}, "secrets", "init")
	if err == nil || !strings.Contains(err.Error(), c.keyring+" was made and stays there: "+goOn) {
		t.Errorf("without a place for its answer: %v", err)
	}
	c.refuses("file already exists; "+goOn, "secrets", "init")
	if keys := c.lists("secrets", "keys"); len(keys) != 1 {
		t.Errorf("the metadata know %v", keys)
	}
	c.does("certificate-key", "create")

	clustertest.Exec(t, url, "DELETE FROM certificate_keys", "DELETE FROM keyring_keys") // as where it was cut off before
	c.refuses("file already exists; "+goOn, "secrets", "init")
	if keys := c.lists("secrets", "keys"); len(keys) != 1 {
		t.Errorf("the metadata know %v", keys)
	}
	c.does("certificate-key", "create")
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestSwitchesAreNamedExactly(t *testing.T) {
	c := newConsole(t)
	c.does("feature", "enable", "clone")
	c.does("feature", "disable", "clone")
	c.refuses("feature", "feature", "enable", "clones")
	c.does("maintenance", "on")
	c.does("maintenance", "off")
	c.refuses("on, off or status", "maintenance", "maybe")
	c.refuses("database: no database is called", "enroll", "--database=00000000-0000-4000-8000-000000000000", "--route=all")
	c.refuses("OPERATION_NOT_FOUND", "operation", "show", "--operation=00000000-0000-4000-8000-000000000000")
}

func TestAnOperatorEndsChanges(t *testing.T) {
	c := newConsole(t)
	nothing := "00000000-0000-4000-8000-000000000000"
	end := []string{"change", "end", "--database=" + nothing, "--change=" + nothing}
	c.refuses("database: no database is called", append(end, "--reason=because")...)
	c.refuses(`"reason" not set`, end...)
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
	if out, err := c.run("doctor"); err != nil || out != "none\n" {
		t.Errorf("without a server: %v, %s", err, out)
	}
	made := c.does("server", "add", "--unchecked", "--name=away", "--agent-url=https://127.0.0.1:1", "--agent-secret="+agentSecret,
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
	if out, err := c.run("doctor"); err != nil || out != "none\n" {
		t.Errorf("without an enabled server: %v, %s", err, out)
	}
}
