//go:build packages

package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// booted is a Debian that systemd has booted.
type booted struct {
	debian
	pid string // of its systemd
}

// boot starts a Debian. It takes root: systemd does not run in somebody's namespace alone. What is returned cuts its power.
func (d debian) boot(t *testing.T) (b booted, off func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a Debian is booted by root only")
	}
	group := fmt.Sprintf("pgherd-packages-%d", os.Getpid())
	said := check.Must(os.Create(filepath.Join(t.TempDir(), "systemd")))(t)
	run := exec.Command("sh", "boot.sh", d.root, group)
	run.Stdout, run.Stderr, run.SysProcAttr = said, said, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the process dies with the thread that has started it
		err := run.Start()
		started <- err
		if err == nil {
			_ = run.Wait()
		}
	}()
	check.NoError(t, <-started)
	off = sync.OnceFunc(func() {
		_ = run.Process.Kill()
		<-ended
		leave(t, d.root, group)
	})
	t.Cleanup(off)
	b = booted{debian: d}
	check.Eventually(t, "systemd does not boot", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", run.Process.Pid))
		if b.pid = strings.TrimSpace(string(children)); b.pid == "" {
			return false
		}
		_, err := b.tries(t, "[ -e /release ] && systemctl is-active --quiet multi-user.target") // and not the test's own machine
		return err == nil
	})
	return b, off
}

// leave removes the control group, which is empty as soon as everything in it has ended.
func leave(t *testing.T, root, group string) {
	t.Helper()
	const remove = `mount -t cgroup2 cgroup2 "$1" && { [ ! -d "$1/$2" ] || find "$1/$2" -depth -type d -exec rmdir {} + ; }`
	check.Eventually(t, "the control group stays", func() bool {
		return exec.Command("unshare", "--mount", "sh", "-c", remove, "sh", filepath.Join(root, "mnt"), group).Run() == nil
	})
}

// tries runs a script as root, as in a shell of a login: where nobody has chosen a locale.
func (b booted) tries(t *testing.T, script string) (string, error) {
	t.Helper()
	c := exec.Command("nsenter", "--target", b.pid, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--",
		"/bin/bash", "-euc", script)
	c.Dir = "/"
	c.Env = []string{
		"HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	c.Env = append(c.Env, accepted(t)...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// accepted passes those of the programs that have known holes by now: readers of the page have the newest, from PostgreSQL's own
// packages, and the stand-ins are the older ones that the tests run on.
func accepted(t *testing.T) []string {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	var versions []string
	for _, path := range []string{tools.Postgres, tools.PgDump, tools.PgBouncer} {
		said := check.Must(floors.Said(t.Context(), path, nil))(t)
		if (floors.Policy{}).Judge(check.Must(floors.Parse(said))(t)).Admit() != nil {
			versions = append(versions, said)
		}
	}
	if versions == nil {
		return nil
	}
	return []string{"PGHERD_ACCEPT_VERSIONS=" + strings.Join(versions, ",")}
}

func (b booted) does(t *testing.T, script string) string {
	t.Helper()
	out, err := b.tries(t, script)
	if err != nil {
		log, _ := b.tries(t, "systemctl --failed --no-pager; journalctl --no-pager --priority warning --lines 60")
		t.Fatalf("%s: %v\n%s\n%s", script, err, out, log)
	}
	return out
}

// The page's blocks, and what its lines may take together.
var blocks = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

const (
	fewLines = 5
	soon     = 2 * time.Minute
)

func startPage(t *testing.T) (lines []string, look string) {
	t.Helper()
	found := blocks.FindAllStringSubmatch(string(check.Must(os.ReadFile("../../docs/operate/start.md"))(t)), -1)
	if len(found) != 2 {
		t.Fatalf("the page has %d blocks", len(found))
	}
	if lines = strings.Split(strings.TrimSpace(found[0][1]), "\n"); len(lines) > fewLines {
		t.Fatalf("the first database takes %d lines", len(lines))
	}
	return lines, found[1][1]
}

// stock gives a Debian what its administrator has: Debian's packages, those of pgherd in the folder /release, and a name. What
// stands in for PostgreSQL's own packages comes by the script that would fetch them.
func (d debian) stock(t *testing.T, suite, release string) {
	t.Helper()
	tools := filepath.Join(check.Must(toolchain.Root())(t), toolchain.Dir)
	at := func(name string) string { return filepath.Join(d.root, name) }
	run(t, ".", `
		mkdir "$1/mirror" && cp "$2"/*.deb "$2"/more/*.deb "$1/mirror/" && sh index.sh "$1/mirror"
		sh standins.sh "$1/pgdg" "$3" && sh index.sh "$1/pgdg"
		cp -r "$4" "$1/release"
		rm "$1/usr/sbin/policy-rc.d"
		[ -e "$1/usr/sbin/init" ] || ln -s ../lib/systemd/systemd "$1/usr/sbin/init" # as systemd-sysv does`,
		d.root, filepath.Join(tools, string(toolchain.Roots), suite), tools, release)
	const script = "#!/bin/sh\nset -e\n[ \"$*\" = -y ]\n" +
		"echo 'deb [trusted=yes] file:/pgdg ./' > /etc/apt/sources.list.d/pgdg.list\napt-get update\n"
	const fetches = "usr/share/postgresql-common/pgdg/apt.postgresql.org.sh"
	check.NoError(t, os.MkdirAll(filepath.Dir(at(fetches)), 0o755))
	check.NoError(t, os.WriteFile(at(fetches), []byte(script), 0o755))
	for name, text := range map[string]string{
		"etc/apt/sources.list": "deb [trusted=yes] file:/mirror ./\n",
		// The names of the machine, and of its service: the latter's is in the place of DNS.
		"etc/hosts":      "127.0.0.1 localhost\n127.0.1.1 debian\n127.0.0.1 db1.example.com\n",
		"etc/machine-id": strings.Repeat("a1", 16) + "\n", // no first boot, which asks questions
	} {
		check.NoError(t, os.WriteFile(at(name), []byte(text), 0o644))
	}
	d.does(t, "dpkg-divert --quiet --local --no-rename --add --divert /"+fetches+".real /"+fetches)
}

// TestTheFirstDatabase follows docs/operate/start.md in bare Debians, as it is printed.
func TestTheFirstDatabase(t *testing.T) {
	from := sources(t)
	run(t, from, `make packages VERSION="$1"`, now)
	release := filepath.Join(from, "dist")
	lines, look := startPage(t)
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			d := install(t, suite)
			d.stock(t, suite, release)
			b, off := d.boot(t)
			var took time.Duration
			for _, line := range lines {
				began := time.Now()
				out := b.does(t, "cd /release\n"+line)
				took += time.Since(began)
				t.Logf("%s: %s\n%s", line, time.Since(began).Round(time.Second), out)
			}
			if took > soon {
				t.Errorf("the first database took %s", took)
			}
			if out := b.does(t, look); !strings.Contains(out, " shop") || !strings.Contains(out, "\nnone\n") {
				t.Errorf("the page's second block says\n%s", out)
			}
			b.isSafe(t)
			if suite == "trixie" { // whose packages have the drivers
				b.customer(t)
			}
			b.repeats(t, lines[3])
			off()
			b, _ = d.boot(t)
			check.Eventually(t, "it does not serve after a power cut", func() bool {
				_, err := b.tries(t, "svc psql shop --role runtime -- -c 'SELECT 1'")
				return err == nil
			})
			b.isNotRemoved(t)
		})
	}
}

// isSafe finds no secret where others look, and no port open but those for customers.
func (b booted) isSafe(t *testing.T) {
	t.Helper()
	b.does(t, `! find /etc/pgherd ! -user root -perm /077 -type f ! -name '*.crt' | grep .`)
	b.does(t, `! find /etc/pgherd /root -name '*.key' -perm /007 | grep .`)
	reached := b.does(t,
		`cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" && $2 ~ /^0+:/ { sub(".*:", "", $2); print $2 }' | sort -u`)
	if want := fmt.Sprintf("%04X\n%04X\n", 6432, 8443); reached != want {
		t.Errorf("others reach the ports %q, not %q", reached, want)
	}
	if out, err := b.tries(t, "runuser -u nobody -- cat /etc/pgherd/control/keyring.json /etc/pgherd/agent/secret"); err == nil {
		t.Errorf("nobody reads secrets: %s", out)
	}
}

// repeats runs the line that sets up again: it changes nothing. What is wrong changes nothing either.
func (b booted) repeats(t *testing.T, line string) {
	t.Helper()
	const all = "find /etc/pgherd /etc/postgresql /root -type f -exec sha256sum {} + | sort -k 2; " +
		"systemctl show --property MainPID pgherd-agent pgherd-pooler pgherd-api"
	before := b.does(t, all)
	if out := b.does(t, line); !strings.Contains(out, "was set up before") {
		t.Errorf("a second run says\n%s", out)
	}
	for _, wrong := range []string{
		"pgherd setup --public-host db2.example.com --email owner@example.com",
		"pgherd setup --public-host db1.example.com --email nobody",
		"pgherd setup --public-host db1.example.com --email owner@example.com --plan free",
	} {
		if out, err := b.tries(t, wrong); err == nil {
			t.Errorf("%s: %s", wrong, out)
		}
	}
	if after := b.does(t, all); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	b.does(t, "for unit in pgherd-agent pgherd-pooler pgherd-api pgherd-batch; do systemctl is-enabled --quiet $unit; done")
}

// isNotRemoved has a removal fail when the units are stopped: what ran runs again, and nothing else.
func (b booted) isNotRemoved(t *testing.T) {
	t.Helper()
	const running = "systemctl show --property MainPID pgherd-agent pgherd-pooler pgherd-api pgherd-batch"
	before := b.does(t, running+"; echo exit 1 >> /var/lib/dpkg/info/pgherd.prerm")
	if out, err := b.tries(t, "dpkg --remove pgherd"); err == nil {
		t.Errorf("it is removed\n%s", out)
	}
	if after := b.does(t, running); after == before {
		t.Errorf("nothing was stopped: %s", after)
	}
	b.does(t, "for unit in pgherd-agent pgherd-pooler pgherd-api pgherd-batch; do systemctl is-active --quiet $unit; done")
	b.does(t, "! systemctl is-active --quiet pgherd-dashboard && [ -z \"$(dpkg --audit)\" ] && ! ls /run/pgherd-stopped")
}
