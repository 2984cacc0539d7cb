//go:build linux

package install

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// followPage does what the page says, and then what an operator does next.
func followPage(t *testing.T, root string, one bool) {
	t.Helper()
	copySources(t, filepath.Join(root, "source"))
	all := newMachines(t, root, one)
	endWith(t, all)
	page := newWalk(t, all)
	page.follow(t, "production.md", func(b block) bool { return b.section != fromPackages && b.section != upgrades })
	customer := page.shells["pgherd@api"]
	if got := page.said["pgherd@api"]; !strings.Contains(got, " shop") || !strings.Contains(got, "(1 row)") {
		t.Errorf("the database says %q", got)
	}
	if all["db1"].services.debian["pgbouncer"] {
		t.Error("Debian's PgBouncer still runs")
	}
	clientIsInstalled(t, all["api"])
	momentIsHadBack(t, all["api"], customer)
	db1 := all["db1"]
	same := reload(t, all)
	if !one {
		usersAreSeveral(t, all)
	}
	othersReadNothing(t, db1)
	poolerStops(t, db1, customer, func() { same("pgherd-pooler") })
	for _, name := range []string{"pgherd-agent", "pgherd-api", "pgherd-batch", "pgherd-dashboard"} {
		same(name)
	}
}

// The sections of docs/operate/production.md that take packages.
const fromPackages, upgrades = "Both machines", "Upgrades"

// endWith ends what runs on the machines with the test.
func endWith(t *testing.T, all map[string]*machine) {
	t.Helper()
	t.Cleanup(func() {
		for _, m := range all {
			if err := m.services.endAll(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				m.showLogs(t)
			}
		}
	})
}

// copySources makes a folder with what "make install" needs, beside the program.
func copySources(t *testing.T, source string) {
	t.Helper()
	for _, pattern := range []string{
		"Makefile", "hosts/pgherd/systemd/*", "docs/operate/*.yml", "docs/operate/*.json", "docs/operate/*.conf",
		"docs/operate/haproxy.cfg",
	} {
		for _, from := range check.Must(filepath.Glob("../../" + pattern))(t) {
			to := filepath.Join(source, strings.TrimPrefix(from, "../../"))
			check.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			check.NoError(t, os.WriteFile(to, check.Must(os.ReadFile(from))(t), 0o644))
		}
	}
}

// clientIsInstalled finds svc with its man pages and its completions.
func clientIsInstalled(t *testing.T, m *machine) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), m.path("usr/local/bin/svc"), "--version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, file := range []string{
		"man/man1/svc.1", "man/man1/svc-databases-create.1",
		"bash-completion/completions/svc", "zsh/site-functions/_svc", "fish/vendor_completions.d/svc.fish",
	} {
		if info, err := os.Stat(m.path("usr/local/share/" + file)); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s is not installed as it should be: %v", file, err)
		}
	}
}

// addSuperuser makes the login that the page presupposes where the superuser has a password.
func (m *machine) addSuperuser(t *testing.T) {
	t.Helper()
	psql := m.services.as("postgres", m.tools.Psql, "-d", "postgres", "-c", "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'PASSWORD'")
	psql.Env = append(psql.Env, "PGHOST="+m.inside("var/run/postgresql"), "PGPORT="+m.ports["5432"], "PGUSER=postgres")
	if out, err := m.output(psql); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (m *machine) showLogs(t *testing.T) {
	t.Helper()
	for _, path := range check.Must(filepath.Glob(m.path("*.log")))(t) {
		text, _ := os.ReadFile(path)
		t.Logf("%s\n%s", path, text[max(0, len(text)-4000):])
	}
}

// reload has every unit reload, and returns what finds the process of each to be the same as before.
func reload(t *testing.T, all map[string]*machine) (same func(name string)) {
	t.Helper()
	on := map[string]*machine{
		"pgherd-agent": all["db1"], "pgherd-pooler": all["db1"], "pgherd-api": all["api"], "pgherd-batch": all["api"],
		"pgherd-dashboard": all["api"],
	}
	before := map[string]int{}
	for name, m := range on {
		before[name] = m.services.pid(name)
		if err := m.services.reload(name); err != nil || before[name] == 0 {
			t.Errorf("%s (process %d) does not reload: %v", name, before[name], err)
		}
	}
	return func(name string) {
		if now := on[name].services.pid(name); now != before[name] {
			t.Errorf("%s: a reload ended process %d, and %d runs", name, before[name], now)
		}
	}
}

// usersAreSeveral finds that no two parts run as the same user, but the hosts of the control plane.
func usersAreSeveral(t *testing.T, all map[string]*machine) {
	t.Helper()
	uids := map[uint32]string{0: "root"}
	for name, m := range map[string]*machine{
		"pgherd-agent": all["db1"], "pgherd-pooler": all["db1"], "postgresql@16-main": all["db1"], "pgherd-api": all["api"],
	} {
		info := check.Must(os.Stat(fmt.Sprintf("/proc/%d", m.services.pid(name))))(t)
		of, ok := info.Sys().(*syscall.Stat_t)
		if !ok || uids[of.Uid] != "" {
			t.Errorf("%s runs as the same user as %s", name, uids[of.Uid])
			continue
		}
		uids[of.Uid] = name
	}
}

// othersReadNothing finds no file with a secret that others than its owner and group can read.
func othersReadNothing(t *testing.T, m *machine) {
	t.Helper()
	var seen []string
	for _, dir := range []string{
		"etc/pgherd/agent", "etc/pgherd/pooler", "var/lib/pgherd-pooler", "var/lib/pgherd-agent", "run/pgherd-pooler",
	} {
		info := check.Must(os.Stat(m.path(dir)))(t)
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s is %v", dir, info.Mode())
		}
		check.NoError(t, filepath.WalkDir(m.path(dir), func(path string, d fs.DirEntry, err error) error {
			name := d.Name()
			secret := slices.Contains([]string{"secret", "tls.key", "credentials.json"}, name) || strings.HasPrefix(name, "accounts-")
			if err == nil && secret {
				seen = append(seen, name)
				if info, _ := d.Info(); info == nil || info.Mode().Perm()&0o027 != 0 {
					t.Errorf("%s: %v", path, info)
				}
			}
			return err
		}))
	}
	if len(seen) != 5 {
		t.Errorf("the files with secrets are %q", seen)
	}
}

// poolerStops stops PgBouncer under a customer's session, which its unit's signal does not wait for, kills it, and finds it back.
// same is called while it still runs as it did before.
func poolerStops(t *testing.T, m *machine, customer *shell, same func()) {
	t.Helper()
	url := strings.TrimSpace(customer.run(t, `echo "$url"`)) + "&sslrootcert=" + m.path(trusted)
	log := func() error { return m.customer(t.Context(), url, "SELECT 1").Run() }
	session := m.customer(t.Context(), url, "SELECT 'in'", "SELECT pg_sleep(600)")
	out := check.Must(session.StdoutPipe())(t)
	check.NoError(t, session.Start())
	check.Must(out.Read(make([]byte, 1)))(t) // it has a server connection
	same()
	began := time.Now()
	check.NoError(t, m.services.end("pgherd-pooler"))
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("PgBouncer took %s to stop", took)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := session.Wait(); err == nil {
		t.Error("the session went on")
	}
	if log() == nil {
		t.Error("somebody logs in at a PgBouncer that was stopped")
	}
	check.NoError(t, m.services.start("pgherd-pooler"))
	check.Eventually(t, "nobody can log in after a restart of PgBouncer", func() bool { return log() == nil })
	check.NoError(t, syscall.Kill(m.services.pid("pgherd-pooler"), syscall.SIGKILL))
	check.Eventually(t, "nobody can log in after PgBouncer's death", func() bool { return log() == nil })
}

// customer runs psql without anything that the machine says.
func (m *machine) customer(ctx context.Context, url string, queries ...string) *exec.Cmd {
	args := []string{"-X", "-At", url}
	for _, q := range queries {
		args = append(args, "-c", q)
	}
	cmd := exec.CommandContext(ctx, m.tools.Psql, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"}
	return cmd
}
