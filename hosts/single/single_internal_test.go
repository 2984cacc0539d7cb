package single

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
)

// debian is a machine that is a folder, with programs that only remember what they did.
type debian struct {
	*machine
	t *testing.T

	postgres string // its version
	others   string // databases of somebody else
	settled  bool   // PostgreSQL was restarted with its settings
	made     []string
	servers  []map[string]string
	accounts []map[string]string
	keys     []map[string]string
	loggedIn string
	enabled  map[string]bool

	calls int
	// cut ends the work at a call; after says that what is called is still done.
	cut   int
	after bool
}

var errCut = errors.New("cut off")

func newDebian(t *testing.T) *debian {
	t.Helper()
	d := &debian{t: t, postgres: "PostgreSQL 16.99", enabled: map[string]bool{}, cut: -1}
	d.machine = &machine{
		root: t.TempDir(), pgherd: "pgherd", out: &bytes.Buffer{}, warnings: &bytes.Buffer{}, run: d.called,
		user:    func(string) (owner, error) { return owner{os.Getuid(), os.Getgid()}, nil },
		resolve: func(context.Context, string) error { return nil },
		answers: func(context.Context, string) error { return nil },
		version: func(_ context.Context, path string) (floors.Version, error) {
			return floors.Parse(map[string]string{
				"postgres": d.postgres, "pg_dump": "pg_dump (PostgreSQL) 16.99", "pgbouncer": "PgBouncer 1.99.0",
			}[filepath.Base(path)])
		},
	}
	for _, n := range needed {
		d.write(n.path, "")
	}
	for _, path := range []string{
		"/usr/bin/svc", "/usr/lib/systemd/system/pgbouncer.service", "/etc/postgresql/16/main/conf.d/x", "/etc/pgherd/agent/x",
		"/etc/pgherd/pooler/x", "/etc/pgherd/control/x",
	} {
		d.write(path, "")
	}
	d.write(agentEnv, "# settings\n#PGHERD_LISTEN=0.0.0.0:8090\n")
	return d
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

// called is the machine's run.
func (d *debian) called(_ context.Context, c call) (string, error) {
	d.calls++
	for _, arg := range c.args {
		if strings.HasPrefix(arg, "pgh_") || strings.Contains(arg, "secret-of") {
			d.t.Errorf("a secret is an argument: %q", c.args)
		}
	}
	if d.calls == d.cut && !d.after {
		return "", errCut
	}
	out, err := d.does(c, strings.Join(c.args, " "))
	if d.calls == d.cut {
		return "", errCut
	}
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
	case strings.Contains(line, "bin/psql"):
		return d.answer(flag("-c"))
	case begins("systemctl"):
		for _, unit := range c.args[2:] {
			d.enabled[unit] = true
		}
		d.settled = d.settled || line == "systemctl restart postgresql@16-main"
		return "", nil
	case begins("pgherd agent init"):
		d.write("/etc/pgherd/agent/credentials.json", "{}")
		return "", nil
	case begins("pgherd admin secrets init"):
		d.make("key ring")
		d.write(keyringFile, "{}")
		return "", nil
	case begins("pgherd migrate"):
		return "", nil
	case begins("pgherd admin "):
		return d.admin(line, flag)
	case begins("svc databases list"):
		if d.loggedIn == "" || d.loggedIn != d.keys[0]["apiKey"] {
			return "", errors.New("401")
		}
		return "", nil
	case begins("svc auth login"):
		d.loggedIn = strings.TrimSpace(c.input)
		return "", nil
	}
	d.t.Fatalf("the machine does not know %s", line)
	return "", nil
}

// make notes what may be made once only.
func (d *debian) make(what string) {
	if slices.Contains(d.made, what) {
		d.t.Errorf("%s is made twice", what)
	}
	d.made = append(d.made, what)
}

func (d *debian) answer(query string) (string, error) {
	count := func(done bool) (string, error) { return map[bool]string{true: "1", false: "0"}[done], nil }
	switch {
	case strings.HasPrefix(query, "CREATE"):
		d.make(query)
		return "", nil
	case strings.Contains(query, "string_agg"):
		return d.others, nil
	case strings.Contains(query, "pg_file_settings"):
		return count(!d.settled)
	case strings.Contains(query, "pg_roles"):
		return count(slices.Contains(d.made, "CREATE ROLE pgherd LOGIN"))
	}
	return count(slices.Contains(d.made, "CREATE DATABASE pgherd OWNER pgherd"))
}

func (d *debian) admin(line string, flag func(string) string) (string, error) {
	show := func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	}
	switch command := strings.TrimPrefix(line, "pgherd admin "); {
	case strings.HasPrefix(command, "server list"):
		return show(d.servers)
	case strings.HasPrefix(command, "server add"):
		d.make("server")
		d.servers = append(d.servers, map[string]string{"name": flag("--name"), "host": flag("--public-host")})
	case strings.HasPrefix(command, "account list"):
		return show(append(d.accounts, map[string]string{"accountId": "another", "email": "x" + flag("--email")}))
	case strings.HasPrefix(command, "account create"):
		d.make("account")
		d.accounts = append(d.accounts, map[string]string{"accountId": "ada", "email": flag("--email")})
		return show(d.accounts[0])
	case strings.HasPrefix(command, "key list"):
		return show(d.keys)
	case strings.HasPrefix(command, "key create"):
		d.make("key")
		d.keys = append(d.keys, map[string]string{"keyId": "k", "label": flag("--label"), "apiKey": "pgh_1"})
		return show(d.keys[0])
	case strings.HasPrefix(command, "key replace"):
		d.keys[0]["apiKey"] += "1"
		return show(d.keys[0])
	default:
		d.t.Fatalf("the machine does not know %s", line)
	}
	return "", nil
}

var meant = wanted{host: "db1.example.com", email: "Ada@example.com", name: "Ada", plan: "pro"}

// done fails where a machine is not set up.
func (d *debian) done(t *testing.T) {
	t.Helper()
	if len(d.servers) != 1 || len(d.accounts) != 1 || len(d.keys) != 1 || d.loggedIn != d.keys[0]["apiKey"] || !d.settled {
		t.Fatalf("servers %v, accounts %v, keys %v, logged in with %q", d.servers, d.accounts, d.keys, d.loggedIn)
	}
	for _, unit := range []string{"pgherd-agent", "pgherd-pooler", "pgherd-api", "pgherd-batch", "postgresql@16-pgherd"} {
		if !d.enabled[unit] {
			t.Errorf("%s does not run", unit)
		}
	}
	for path, mode := range map[string]fs.FileMode{
		"/etc/pgherd/agent/tls.key": 0o600, "/etc/pgherd/pooler/tls.key": 0o640, "/etc/pgherd/control/tls.key": 0o600,
		"/etc/pgherd/pooler/tls.crt": 0o644, secretFile: 0o600, metadataURLFile: 0o600, caDir + "/ca.key": 0o600, caFile: 0o644,
		agentEnv: 0o640, "/etc/postgresql/16/main/conf.d/pgherd.conf": 0o644,
	} {
		if info, err := os.Stat(d.path(path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if d.has("/etc/pgherd/control/db1.secret") {
		t.Error("a copy of the secret is left")
	}
	if text := d.read(agentEnv); strings.Count(text, "\nPGHERD_LISTEN=127.0.0.1:8090\n") != 1 {
		t.Errorf("the agent's settings are %q", text)
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
	check.NoError(t, d.setUp(t.Context(), meant))
	d.done(t)
	before := d.files()
	check.NoError(t, d.setUp(t.Context(), meant))
	d.done(t)
	if after := d.files(); after != before {
		t.Errorf("a second run changes files:\n%s\nthey were\n%s", after, before)
	}
}

// TestHalfDoneIsContinued cuts the work off at each call, before and after what it does, and runs it again.
func TestHalfDoneIsContinued(t *testing.T) {
	whole := newDebian(t)
	check.NoError(t, whole.setUp(t.Context(), meant))
	for at := 1; at <= whole.calls; at++ {
		for _, after := range []bool{false, true} {
			d := newDebian(t)
			d.cut, d.after = at, after
			// One call asks whether svc is logged in: an error is its answer.
			if err := d.setUp(t.Context(), meant); err != nil && !errors.Is(err, errCut) {
				t.Fatalf("cut off at %d: %v", at, err)
			}
			d.cut = -1
			check.NoError(t, d.setUp(t.Context(), meant))
			d.done(t)
		}
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
		"databases of others": {"(erp)", func(d *debian, _ *wanted) { d.others = "erp" }},
		"no package": {"postgresql-16", func(d *debian, _ *wanted) {
			check.NoError(d.t, os.Remove(d.path("/etc/postgresql/16/main/postgresql.conf")))
		}},
		"no user": {"package", func(d *debian, _ *wanted) { d.user = func(string) (owner, error) { return owner{}, errCut } }},
	} {
		t.Run(name, func(t *testing.T) {
			d, w := newDebian(t), meant
			c.with(d, &w)
			before := d.files()
			if err := d.setUp(t.Context(), w); err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v", err)
			}
			if d.files() != before || len(d.made)+len(d.enabled) > 0 {
				t.Errorf("it has changed something: %v %v", d.made, d.enabled)
			}
		})
	}
}

func TestAnotherNameIsRefusedAfterwards(t *testing.T) {
	d, other := newDebian(t), meant
	check.NoError(t, d.setUp(t.Context(), meant))
	before := d.files()
	other.host = "db2.example.com"
	if err := d.setUp(t.Context(), other); err == nil || !strings.Contains(err.Error(), "--public-host") || d.files() != before {
		t.Errorf("%v", err)
	}
}

func TestCertificatesOfOthersStay(t *testing.T) {
	d, elsewhere := newDebian(t), newDebian(t)
	check.NoError(t, elsewhere.setUp(t.Context(), meant))
	theirs := elsewhere.read("/etc/pgherd/pooler/tls.crt")
	d.write("/etc/pgherd/pooler/tls.crt", theirs)
	d.write("/etc/pgherd/pooler/tls.key", "theirs")
	check.NoError(t, d.setUp(t.Context(), meant))
	if d.read("/etc/pgherd/pooler/tls.crt") != theirs || d.read("/etc/pgherd/pooler/tls.key") != "theirs" {
		t.Error("a certificate of somebody else's was replaced")
	}
}

func TestWhatTheOperatorHasSetStays(t *testing.T) {
	d, w := newDebian(t), meant
	d.write(agentEnv, "PGHERD_LISTEN=10.0.0.1:8090\nPGHERD_ACCEPT_VERSIONS=former\n")
	d.write("/etc/postgresql/16/main/conf.d/pgherd.conf", "max_connections = 3000\n")
	d.postgres = "PostgreSQL 16.1 (Debian 16.1-1)"
	w.versions = []string{d.postgres}
	check.NoError(t, d.setUp(t.Context(), w))
	const want = "PGHERD_LISTEN=10.0.0.1:8090\nPGHERD_ACCEPT_VERSIONS=\"PostgreSQL 16.1 (Debian 16.1-1)\"\n" +
		"PGHERD_POSTGRES_PORT=5432\n"
	if have := d.read(agentEnv); have != want {
		t.Errorf("the agent's settings are %q", have)
	}
	if have := d.read("/etc/postgresql/16/main/conf.d/pgherd.conf"); have != "max_connections = 3000\n" {
		t.Errorf("PostgreSQL's settings are %q", have)
	}
}

// The page for those who do the same by hand has these settings.
func TestSettingsAreThoseOfThePage(t *testing.T) {
	page := string(check.Must(os.ReadFile("../../docs/operate/production.md"))(t))
	if !strings.Contains(page, "<< 'END'\n"+serverSettings+"END\n") {
		t.Errorf("docs/operate/production.md has other settings than\n%s", serverSettings)
	}
}
