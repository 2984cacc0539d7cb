//go:build packages

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// debian is a bare installation.
type debian struct{ root string }

// install installs a suite. It takes root, or somebody whom the machine gives user IDs of their own to (newuidmap).
func install(t *testing.T, suite string) debian {
	t.Helper()
	d := debian{t.TempDir()}
	debs := filepath.Join(check.Must(toolchain.Root())(t), toolchain.Dir, string(toolchain.Roots), suite)
	if out, err := alone(t, "sh", "bare.sh", debs, d.root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := alone(t, "rm", "-rf", "--", d.root).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return d
}

// alone is a command that has mounts and processes of its own, as root.
func alone(t *testing.T, args ...string) *exec.Cmd {
	unshare := []string{"--mount", "--pid", "--fork"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user", "--map-auto")
	}
	return exec.Command("unshare", append(unshare, args...)...)
}

// does runs a script in the installation, as root, and returns what it prints.
func (d debian) does(t *testing.T, script string) string {
	t.Helper()
	out, err := d.tries(t, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (d debian) tries(t *testing.T, script string) (string, error) {
	c := alone(t, "sh", "-c", `mount -t proc proc "$1/proc" && exec chroot "$1" sh -euc "$2"`, "sh", d.root, script)
	c.Env = []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// says fails where what a script prints lacks something.
func (d debian) says(t *testing.T, script string, wanted ...string) {
	t.Helper()
	out := d.does(t, script)
	for _, want := range wanted {
		if !strings.Contains(out, want) {
			t.Errorf("%s: it lacks %q\n%s", script, want, out)
		}
	}
}

// kept are files that are not the packages' to delete.
const kept = "/etc/pgherd/control/keyring.json /etc/pgherd/agent/secret /var/lib/pgherd-agent/backups/shop.sql.gz"

// life installs, upgrades, removes, installs again and purges.
func (d debian) life(t *testing.T) {
	t.Helper()
	d.does(t, "dpkg --install /"+before+"/*.deb")
	d.says(t, "pgherd --version; svc --version", before+" ("+commit+")")
	d.says(t, "cd /etc/pgherd; stat --format '%U %G %a' control agent /var/lib/pgherd-agent/backups /var/lib/pgherd-pooler api.env",
		"pgherd pgherd 700\npgherd-agent pgherd-agent 700\npgherd-agent pgherd-agent 700\npgherd-agent pgbouncer 750\nroot root 640\n")
	d.says(t, "cat /usr/lib/systemd/system/pgherd-api.service", "ExecStart=/usr/bin/pgherd api\n")
	d.does(t, "systemd-analyze verify --man=no /usr/lib/systemd/system/pgherd-*.service 2>&1 | (! grep -v /usr/sbin/pgbouncer)")
	d.does(t, "test -s /usr/share/man/man8/pgherd-agent-init.8.gz && test -s /usr/share/man/man1/svc-databases-create.1.gz")
	d.says(t, "cd /usr/share/pgherd && ls --format=single-column",
		"alertmanager.yml\nalerts.yml\ngrafana.json\nhaproxy.cfg\nprometheus.yml\nrsyslog.conf\n")
	d.does(t, "test -s /usr/share/bash-completion/completions/svc")
	d.everySettingIsAComment(t)

	d.does(t, "for file in "+kept+"; do echo mine > $file; done; echo PGHERD_LOG_LEVEL=debug >> /etc/pgherd/api.env")
	d.does(t, "dpkg --install /"+now+"/*.deb")
	d.says(t, "pgherd --version; svc --version; tail -n 1 /etc/pgherd/api.env", now+" ("+commit+")", "PGHERD_LOG_LEVEL=debug\n")

	d.does(t, "dpkg --remove pgherd pgherd-svc")
	d.does(t, "! command -v pgherd && ! command -v svc && grep -q ^mine "+kept+" && test -s /etc/pgherd/api.env")
	d.does(t, "dpkg --install /"+now+"/pgherd_*.deb && grep -q ^PGHERD_LOG_LEVEL=debug /etc/pgherd/api.env")

	d.says(t, "dpkg --purge pgherd pgherd-svc 2>&1", "pgherd: kept: /etc/pgherd/control\n", "pgherd: kept: /etc/pgherd/agent\n",
		"pgherd: kept: /var/lib/pgherd-agent\n")
	d.does(t, "cat "+kept+" && ! test -e /etc/pgherd/api.env && ! test -e /var/lib/pgherd-pooler && id pgherd-agent")
	d.does(t, "dpkg --install /"+now+"/pgherd_*.deb && test $(stat --format %U /etc/pgherd/control/keyring.json) = root")
}

// everySettingIsAComment starts each host with every line of its file uncommented that has a value: it complains of nothing but
// what this machine lacks.
func (d debian) everySettingIsAComment(t *testing.T) {
	t.Helper()
	for _, host := range []string{"api", "batch", "dashboard", "agent"} {
		d.does(t, "! grep -qv '^#\\|^$' /etc/pgherd/"+host+".env")
		out, err := d.tries(t, "grep '^#PGHERD_' /etc/pgherd/"+host+".env | grep -v '=$' | sed 's/^#//' > /settings; "+
			"while IFS= read -r line; do export \"$line\"; done < /settings; timeout 10 pgherd "+host)
		if err == nil || strings.Contains(out, "does not take") {
			t.Errorf("%s: %v\n%s", host, err, out)
		}
	}
}
