package single

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/hosts/internal/profile"
)

// debian is a machine that is a folder, with programs that only remember what they did.
type debian struct {
	*machine
	t *testing.T

	postgres string // its version
	home     string // the caller's folder for configurations
	wrong    error  // what PostgreSQL says of its settings
	// others are databases of somebody else, or of customers; prepared says that the agent's is there, too.
	others   []string
	prepared bool
	settled  bool // PostgreSQL was restarted with its settings
	made     []string
	servers  []map[string]string
	accounts []map[string]string
	keys     []map[string]string
	texts    map[string]string // of keys, by their IDs
	units    map[string]unit
	knows    string // the settings that the agent has read
	asked    []string
	acts     []string // what was run that changes something

	calls int
	// cut ends the work at a call, or before a file gets its name; after says that what is called is still done.
	cut   int
	after bool
}

var errCut = errors.New("cut off")

func newDebian(t *testing.T) *debian {
	t.Helper()
	d := &debian{
		t: t, postgres: "PostgreSQL 16.99", cut: -1, texts: map[string]string{},
		units: map[string]unit{debiansPooler: {runs: true, enabled: true}},
	}
	d.machine = &machine{
		root: t.TempDir(), pgherd: "pgherd", out: &bytes.Buffer{}, warnings: &bytes.Buffer{}, run: d.called,
		user:    func(string) (owner, error) { return owner{os.Getuid(), os.Getgid()}, nil },
		resolve: func(context.Context, string) error { return nil },
		answers: func(_ context.Context, url string) error { d.asked = append(d.asked, url); return nil },
		rename: func(from, to string) error {
			return d.cuttable(func() error { return os.Rename(from, to) })
		},
		version: func(_ context.Context, path string) (floors.Version, error) {
			return floors.Parse(map[string]string{
				"postgres": d.postgres, "pg_dump": "pg_dump (PostgreSQL) 16.99", "pgbouncer": "PgBouncer 1.99.0",
			}[filepath.Base(path)])
		},
	}
	d.home = d.path("/root/.config")
	for _, n := range needed {
		d.write(n.path, "")
	}
	for _, path := range []string{
		"/usr/bin/svc", "/etc/postgresql/16/main/conf.d/x", "/etc/pgherd/agent/x", "/etc/pgherd/pooler/x", "/etc/pgherd/control/x",
	} {
		d.write(path, "")
	}
	d.write("/etc/pgbouncer/pgbouncer.ini", debiansIni)
	d.write(envFile("agent"), "# settings\n#PGHERD_LISTEN=:8090\n")
	return d
}

// sets has the caller set the machine up, and returns what that says.
func (d *debian) sets(w wanted) (said string, err error) {
	d.t.Setenv("HOME", filepath.Dir(d.home))
	d.t.Setenv("XDG_CONFIG_HOME", d.home)
	d.changes = 0
	var out bytes.Buffer
	d.out = &out
	err = d.setUp(d.t.Context(), w)
	return out.String(), err
}

// up is sets where that must not fail.
func (d *debian) up(w wanted) (said string) {
	d.t.Helper()
	return check.Must(d.sets(w))(d.t)
}

func (d *debian) write(path, text string) {
	d.t.Helper()
	check.NoError(d.t, os.MkdirAll(filepath.Dir(d.path(path)), 0o755))
	check.NoError(d.t, os.WriteFile(d.path(path), []byte(text), 0o600))
}

func (d *debian) read(path string) string {
	d.t.Helper()
	return string(check.Must(os.ReadFile(d.path(path)))(d.t))
}

// cuttable does something that the work may be cut off at.
func (d *debian) cuttable(do func() error) error {
	d.calls++
	if d.calls == d.cut && !d.after {
		return errCut
	}
	err := do()
	if d.calls == d.cut {
		return errCut
	}
	return err
}

// called is the machine's run.
func (d *debian) called(_ context.Context, c call) (out string, err error) {
	for _, arg := range c.args {
		if strings.HasPrefix(arg, "pgh_") || d.has(secretFile) && strings.Contains(arg, strings.TrimSpace(d.read(secretFile))) {
			d.t.Errorf("a secret is an argument: %q", c.args)
		}
	}
	err = d.cuttable(func() error {
		out, err = d.does(c, strings.Join(c.args, " "))
		return err
	})
	return out, err
}

func (d *debian) does(c call, line string) (string, error) {
	flag := func(name string) string {
		at := slices.Index(c.args, name)
		if at < 0 {
			d.t.Fatalf("%s lacks %s", line, name)
		}
		return c.args[at+1]
	}
	begins := func(with string) bool { return strings.HasPrefix(line, with) }
	switch {
	case begins("pg_conftool --short 16 main"):
		return "5432", nil
	case begins("pg_conftool --short 16 pgherd"):
		return "5433", nil
	case begins("pg_createcluster"):
		d.make("cluster")
		d.write("/etc/postgresql/16/pgherd/postgresql.conf", "")
		return "", os.MkdirAll(d.path("/etc/postgresql/16/pgherd/conf.d"), 0o755)
	case strings.Contains(line, "bin/postgres -C"):
		return "100", d.wrong
	case strings.Contains(line, "bin/psql"):
		return d.answer(flag("-c"))
	case begins("systemctl show"):
		return d.shows(c.args[len(c.args)-1]), nil
	case begins("systemctl"):
		d.acts = append(d.acts, line)
		d.systemctls(c.args[1], c.args[len(c.args)-1])
		return "", nil
	case begins("pgherd agent init"):
		d.prepared = true
		d.write(credentialsFile, "{}")
		return "", nil
	case begins("pgherd admin secrets init"):
		d.make("key ring")
		d.write(keyringFile, "{}")
		return "", nil
	case begins("pgherd migrate"):
		return "", nil
	case begins("pgherd admin "):
		return d.admin(c, line, flag)
	}
	d.t.Fatalf("the machine does not know %s", line)
	return "", nil
}

// shows is what systemd says of a unit.
func (d *debian) shows(name string) string {
	u := d.units[name]
	return "ActiveState=" + map[bool]string{true: "active", false: "inactive"}[u.runs] +
		"\nUnitFileState=" + map[bool]string{true: "enabled", false: ""}[u.enabled]
}

func (d *debian) systemctls(verb, name string) {
	u := d.units[name]
	switch verb {
	case "enable":
		u = unit{true, true}
	case "disable":
		u = unit{}
	case "start", "restart", "stop":
		u.runs = verb != "stop"
	default:
		d.t.Fatalf("systemd does not know %s", verb)
	}
	if !d.units[name].runs && name == "pgherd-agent" {
		d.knows = d.read(envFile("agent"))
	}
	d.settled = d.settled || verb == "restart" && name == "postgresql@16-main"
	d.units[name] = u
}

// make notes what may be made once only.
func (d *debian) make(what string) {
	if slices.Contains(d.made, what) {
		d.t.Errorf("%s is made twice", what)
	}
	d.made = append(d.made, what)
	d.acts = append(d.acts, "make "+what)
}

func (d *debian) answer(query string) (string, error) {
	count := func(done bool) (string, error) { return map[bool]string{true: "1", false: "0"}[done], nil }
	switch {
	case strings.HasPrefix(query, "CREATE"):
		d.make(query)
		return "", nil
	case strings.HasPrefix(query, "SELECT datname"):
		if d.prepared {
			return strings.Join(append([]string{setup.MaintenanceDatabase}, d.others...), "\n"), nil
		}
		return strings.Join(d.others, "\n"), nil
	case query == waiting:
		if d.settled {
			return "", nil
		}
		return "max_connections\nshared_preload_libraries", nil
	case strings.Contains(query, "pg_roles"):
		return count(slices.Contains(d.made, "CREATE ROLE pgherd LOGIN"))
	}
	return count(slices.Contains(d.made, "CREATE DATABASE pgherd OWNER pgherd"))
}

func (d *debian) admin(c call, line string, flag func(string) string) (string, error) {
	show := func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	}
	keyed := func(key map[string]string) (string, error) {
		d.acts = append(d.acts, line)
		shown := maps.Clone(key)
		shown["apiKey"] = d.texts[key["keyId"]]
		return show(shown)
	}
	switch command := strings.TrimPrefix(line, "pgherd admin "); {
	case strings.HasPrefix(command, "server list"):
		return show(d.servers)
	case strings.HasPrefix(command, "server add"):
		d.make("server")
		if !slices.Contains(c.env, "PGHERD_AGENT_SECRET="+strings.TrimSpace(d.read(secretFile))) {
			d.t.Errorf("the server is registered with %q", c.env)
		}
		d.servers = append(d.servers, map[string]string{
			"name": flag("--name"), "host": flag("--public-host"), "agentUrl": flag("--agent-url"),
		})
	case strings.HasPrefix(command, "account list"):
		if slices.Contains(c.args, "--limit") {
			return show(d.accounts)
		}
		return show(append(d.accounts, map[string]string{"accountId": "another", "email": "x" + flag("--email")}))
	case strings.HasPrefix(command, "account create"):
		d.make("account")
		d.accounts = append(d.accounts, map[string]string{"accountId": "ada", "email": flag("--email")})
		return show(d.accounts[0])
	case strings.HasPrefix(command, "key list"):
		return show(d.keys)
	case strings.HasPrefix(command, "key create"):
		id := fmt.Sprintf("k%d", len(d.keys)+1)
		d.keys, d.texts[id] = append(d.keys, map[string]string{
			"keyId": id, "prefix": "pgh_" + id, "label": check.Must(account.ValidateLabel(flag("--label")))(d.t),
		}), "pgh_"+id+"_text"
		return keyed(d.keys[len(d.keys)-1])
	case strings.HasPrefix(command, "key replace"):
		id := flag("--key")
		at := slices.IndexFunc(d.keys, func(k map[string]string) bool { return k["keyId"] == id })
		delete(d.texts, id)
		id += "1"
		d.texts[id] = "pgh_" + id + "_text"
		d.keys[at]["keyId"], d.keys[at]["prefix"] = id, "pgh_"+id
		return keyed(d.keys[at])
	default:
		d.t.Fatalf("the machine does not know %s", line)
	}
	return "", nil
}

var meant = wanted{host: "db1.example.com", email: "Ada@example.com", name: "Ada", plan: "pro"}

// profile is what svc has for the caller.
func (d *debian) profile() profile.Profile {
	d.t.Helper()
	d.t.Setenv("XDG_CONFIG_HOME", d.home)
	stored := check.Must(profile.Load())(d.t)
	if stored.Current != meant.host {
		d.t.Errorf("svc uses %q", stored.Current)
	}
	return stored.Profiles[meant.host]
}

// done fails where a machine is not set up.
func (d *debian) done(t *testing.T) {
	t.Helper()
	if len(d.servers) != 1 || len(d.accounts) != 1 || len(d.keys) != 1 || !d.settled {
		t.Fatalf("servers %v, accounts %v, keys %v, %v", d.servers, d.accounts, d.keys, d.settled)
	}
	if want := (profile.Profile{
		URL: "https://db1.example.com:8443", Key: d.texts[d.keys[0]["keyId"]], CAFile: d.path(caFile),
	}); d.profile() != want {
		t.Errorf("svc has %+v, not %+v", d.profile(), want)
	}
	for _, name := range []string{"pgherd-agent", "pgherd-pooler", "pgherd-api", "pgherd-batch"} {
		if d.units[name] != (unit{true, true}) {
			t.Errorf("%s does not run", name)
		}
	}
	if !d.units["postgresql@16-pgherd"].runs || d.units[debiansPooler] != (unit{}) {
		t.Errorf("it runs %v", d.units)
	}
	for path, mode := range map[string]fs.FileMode{
		"/etc/pgherd/agent/tls.key": 0o600, "/etc/pgherd/pooler/tls.key": 0o640, "/etc/pgherd/control/tls.key": 0o600,
		"/etc/pgherd/pooler/tls.crt": 0o644, secretFile: 0o600, metadataURLFile: 0o600, caDir + "/ca.key": 0o600, caFile: 0o644,
		envFile("agent"): 0o640, "/etc/postgresql/16/main/conf.d/pgherd.conf": 0o644,
	} {
		if info, err := os.Stat(d.path(path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if strings.Count(d.files(), strings.TrimSpace(d.read(secretFile))) != 1 {
		t.Error("the secret is in another file, too")
	}
	text := d.read(envFile("agent"))
	for _, line := range []string{"PGHERD_LISTEN=127.0.0.1:8090", "PGHERD_SERVER_NAME=" + d.servers[0]["name"]} {
		if strings.Count("\n"+text, "\n"+line+"\n") != 1 {
			t.Errorf("the agent's settings are %q", text)
		}
	}
	if d.knows != text {
		t.Errorf("the agent runs with the settings %q, not %q", d.knows, text)
	}
}

// files are all that a machine has, by their contents.
func (d *debian) files() string {
	var all strings.Builder
	check.NoError(d.t, filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			fmt.Fprintf(&all, "%s %q\n", path, check.Must(os.ReadFile(path))(d.t))
		}
		return err
	}))
	return all.String()
}

func TestTwiceIsOnce(t *testing.T) {
	d := newDebian(t)
	if said := d.up(meant); strings.Contains(said, "before") || !strings.Contains(said, "\n  wrote "+envFile("agent")+"\n") {
		t.Errorf("the first run says %s", said)
	}
	d.done(t)
	before, acts := d.files(), len(d.acts)
	said := d.up(meant)
	d.done(t)
	if after := d.files(); after != before {
		t.Errorf("a second run changes files:\n%s\nthey were\n%s", after, before)
	}
	if len(d.acts) > acts {
		t.Errorf("a second run does %q", d.acts[acts:])
	}
	if !strings.Contains(said, "\npgherd was set up before: ") || strings.Contains(said, "\n  wrote ") {
		t.Errorf("a second run says %s", said)
	}
}

// TestHalfDoneIsContinued cuts the work off at each call and at each file, before and after what it does, and runs it again.
func TestHalfDoneIsContinued(t *testing.T) {
	for name, begins := range map[string]func(*debian){
		"bare": func(*debian) {},
		// It has other settings for the agent, and certificates of its own that nobody has any more.
		"set up before": func(d *debian) {
			d.up(meant)
			d.write(envFile("agent"), "PGHERD_POSTGRES_PORT=1\n")
			for _, name := range []string{"agent", "control"} {
				check.NoError(d.t, os.Remove(d.path("/etc/pgherd/"+name+"/tls.crt")))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newDebian(t)
			begins(whole)
			whole.calls = 0
			whole.up(meant)
			for at := 1; at <= whole.calls; at++ {
				for _, after := range []bool{false, true} {
					d := newDebian(t)
					begins(d)
					d.calls, d.cut, d.after = 0, at, after
					if _, err := d.sets(meant); !errors.Is(err, errCut) {
						t.Fatalf("cut off at %d: %v", at, err)
					}
					d.cut = -1
					d.up(meant)
					d.done(t)
				}
			}
		})
	}
}

// refused fails unless setting up is refused with certain words, and changes nothing.
func (d *debian) refused(w wanted, say string) {
	d.t.Helper()
	before, acts := d.files(), len(d.acts)
	if _, err := d.sets(w); err == nil || !strings.Contains(err.Error(), say) {
		d.t.Errorf("it ends with %v, and not with %s", err, say)
	}
	if d.files() != before || len(d.acts) > acts {
		d.t.Errorf("it has changed something: %v", d.acts[acts:])
	}
}

func TestWhatIsWrongChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		with func(*debian, *wanted)
	}{
		"no host name":          {"--public-host", func(_ *debian, w *wanted) { w.host = "db1 example" }},
		"no mail address":       {"--email", func(_ *debian, w *wanted) { w.email = "ada" }},
		"no name":               {"--name", func(_ *debian, w *wanted) { w.name = " " }},
		"a plan without an API": {"--plan", func(_ *debian, w *wanted) { w.plan = "free" }},
		"no plan":               {"--plan", func(_ *debian, w *wanted) { w.plan = "gold" }},
		"no version":            {"--accept-versions", func(_ *debian, w *wanted) { w.versions = []string{"16"} }},
		"no language":           {"languages", func(_ *debian, w *wanted) { w.languages = []string{"*"} }},
		"a name that nobody has": {"--public-host", func(d *debian, _ *wanted) {
			d.resolve = func(context.Context, string) error { return errCut }
		}},
		"known holes":         {"--accept-versions 'PostgreSQL 16.1'", func(d *debian, _ *wanted) { d.postgres = "PostgreSQL 16.1" }},
		"databases of others": {"(erp, crm)", func(d *debian, _ *wanted) { d.others = []string{"erp", "crm"} }},
		"somebody's agent":    {setup.MaintenanceDatabase, func(d *debian, _ *wanted) { d.prepared = true }},
		"settings with a fault": {"conf.d/x", func(d *debian, _ *wanted) {
			d.wrong = errors.New("unrecognized configuration parameter in conf.d/x line 2")
		}},
		"databases of PgBouncer": {"systemctl disable --now pgbouncer", func(d *debian, _ *wanted) {
			d.write("/etc/pgbouncer/pgbouncer.ini", "[databases]\nerp = host=10.0.0.7\n")
		}},
		"a profile that others read": {"0644", func(d *debian, _ *wanted) {
			d.write("/root/.config/svc/config.json", "{}")
			check.NoError(d.t, os.Chmod(d.path("/root/.config/svc/config.json"), 0o644))
		}},
		"no package": {"postgresql-16", func(d *debian, _ *wanted) {
			check.NoError(d.t, os.Remove(d.path("/etc/postgresql/16/main/postgresql.conf")))
		}},
		"no user": {"package", func(d *debian, _ *wanted) { d.user = func(string) (owner, error) { return owner{}, errCut } }},
	} {
		t.Run(name, func(t *testing.T) {
			d, w := newDebian(t), meant
			c.with(d, &w)
			d.refused(w, c.say)
		})
	}
}

// A machine that was set up by hand belongs to another control plane, or has one that knows other servers.
func TestWhatWasSetUpByHandIsRefused(t *testing.T) {
	for _, made := range []string{
		"/etc/pgherd/agent/credentials.json", "/etc/pgherd/agent/tls.crt", "/etc/pgherd/agent/secret",
		"/etc/pgherd/control/metadata-url", "/etc/pgherd/control/keyring.json", "/etc/postgresql/16/pgherd/postgresql.conf",
	} {
		d := newDebian(t)
		d.write(made, "by hand")
		d.write("/etc/pgherd/ca/ca.pem", "theirs")
		d.refused(meant, made)
	}
}

func TestAnotherNameIsRefusedAfterwards(t *testing.T) {
	d, other := newDebian(t), meant
	d.up(meant)
	other.host = "db2.example.com"
	d.refused(other, "--public-host")
	other = meant
	other.email = "eda@example.com"
	d.refused(other, "--email: there are accounts, and none of eda@example.com")
}

// What a run that was killed has left of a file is not there for ever: it may be a secret.
func TestWhatWasLeftOfAFileGoes(t *testing.T) {
	d := newDebian(t)
	left := []string{secretFile, "/etc/pgherd/control/tls.key", metadataURLFile, envFile("agent")}
	for _, path := range left {
		d.write(path+unnamed, "half of it")
	}
	d.up(meant)
	d.done(t)
	for _, path := range left {
		if d.has(path + unnamed) {
			t.Errorf("%s is left", path+unnamed)
		}
	}
}

func TestCertificatesOfOthersStay(t *testing.T) {
	d, elsewhere := newDebian(t), newDebian(t)
	elsewhere.up(meant)
	theirs := elsewhere.read("/etc/pgherd/pooler/tls.crt")
	d.write("/etc/pgherd/pooler/tls.crt", theirs)
	d.write("/etc/pgherd/pooler/tls.key", "theirs")
	d.up(meant)
	if d.read("/etc/pgherd/pooler/tls.crt") != theirs || d.read("/etc/pgherd/pooler/tls.key") != "theirs" {
		t.Error("a certificate of somebody else's was replaced")
	}
}

func TestWhatTheOperatorHasSetStays(t *testing.T) {
	d, w := newDebian(t), meant
	d.write(envFile("agent"), "PGHERD_LISTEN=10.0.0.1:8090\nPGHERD_ACCEPT_VERSIONS=former\nPGHERD_SERVER_NAME=east\n")
	d.write("/etc/postgresql/16/main/conf.d/pgherd.conf", "max_connections = 3000\n")
	d.postgres = "PostgreSQL 16.1 (Debian 16.1-1)"
	w.versions = []string{d.postgres}
	d.up(w)
	const want = "PGHERD_LISTEN=10.0.0.1:8090\nPGHERD_ACCEPT_VERSIONS=\"PostgreSQL 16.1 (Debian 16.1-1)\"\n" +
		"PGHERD_SERVER_NAME=east\nPGHERD_POSTGRES_PORT=5432\n"
	if have := d.read(envFile("agent")); have != want {
		t.Errorf("the agent's settings are %q", have)
	}
	if have := d.read("/etc/postgresql/16/main/conf.d/pgherd.conf"); have != "max_connections = 3000\n" {
		t.Errorf("PostgreSQL's settings are %q", have)
	}
	// The control plane knows the agent as it is set.
	if s := d.servers[0]; s["name"] != "east" || s["agentUrl"] != "https://10.0.0.1:8090" {
		t.Errorf("the server is %v", s)
	}
	block, _ := pem.Decode([]byte(d.read("/etc/pgherd/agent/tls.crt")))
	check.NoError(t, check.Must(x509.ParseCertificate(block.Bytes))(t).VerifyHostname("10.0.0.1"))
}

// The package makes the file, and an operator may have deleted it.
func TestTheFileOfSettingsNeedNotBeThere(t *testing.T) {
	d := newDebian(t)
	check.NoError(t, os.Remove(d.path(envFile("agent"))))
	d.up(meant)
	d.done(t)
	const want = "PGHERD_LISTEN=127.0.0.1:8090\nPGHERD_SERVER_NAME=db1\nPGHERD_POSTGRES_PORT=5432\n"
	if have := d.read(envFile("agent")); have != want {
		t.Errorf("the agent's settings are %q", have)
	}
}

// An operator who has Prometheus reach a host has moved where it says that it is ready.
func TestHostsAreAskedWhereTheyListen(t *testing.T) {
	d := newDebian(t)
	d.write(envFile("agent"), "PGHERD_OPS_LISTEN=\n PGHERD_OPS_LISTEN=\":9091\"\n#PGHERD_OPS_LISTEN=:1\n")
	d.write(envFile("api"), "PGHERD_OPS_LISTEN=10.0.0.5:9081\nPGHERD_LISTEN=:443\n")
	said := d.up(meant)
	if want := []string{
		"http://127.0.0.1:9091/readyz", "http://10.0.0.5:9081/readyz", "http://127.0.0.1:8082/readyz",
	}; !slices.Equal(d.asked, want) {
		t.Errorf("it has asked %q", d.asked)
	}
	if p := d.profile(); p.URL != "https://db1.example.com" || !strings.Contains(said, p.URL+"\n") {
		t.Errorf("the API is at %q, in\n%s", p.URL, said)
	}
}

func TestReached(t *testing.T) {
	for listen, want := range map[string]string{
		":1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.0.0.5:1": "10.0.0.5:1",
		"[2001:db8::1]:1": "[2001:db8::1]:1", "localhost:1": "localhost:1", "nonsense": "nonsense",
	} {
		if got := reached(listen); got != want {
			t.Errorf("%s: %s, not %s", listen, got, want)
		}
	}
}

// The page for those who do the same by hand has these settings.
func TestSettingsAreThoseOfThePage(t *testing.T) {
	page := string(check.Must(os.ReadFile("../../docs/operate/production.md"))(t))
	if !strings.Contains(page, "<< 'END'\n"+serverSettings+"END\n") {
		t.Errorf("docs/operate/production.md has other settings than\n%s", serverSettings)
	}
}
