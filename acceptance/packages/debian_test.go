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
	d.says(t, "cd /usr/share/pgherd && ls --format=single-column", "agent.env\nalertmanager.yml\nalerts.yml\napi.env\nbatch.env\n"+
		"dashboard.env\ngrafana.json\nhaproxy.cfg\nprometheus.yml\nrsyslog.conf\n")
	d.does(t, "test -s /usr/share/bash-completion/completions/svc")
	d.everySettingIsAComment(t)

	d.does(t, "for file in "+kept+"; do echo mine > $file; done")
	d.does(t, "for host in api agent; do echo PGHERD_LOG_LEVEL=debug >> /etc/pgherd/$host.env; done; rm /etc/pgherd/batch.env")
	d.does(t, "systemctl enable pgherd-api pgherd-agent 2>&1")
	d.isUpgraded(t)
	d.refusesToGoBack(t)
	d.findsWhatMakeInstalled(t)

	d.does(t, "dpkg --remove pgherd pgherd-svc")
	d.does(t, "! command -v pgherd && ! command -v svc && grep -q ^mine "+kept+" && test -s /etc/pgherd/api.env")
	d.does(t, "dpkg --install /"+now+"/pgherd_*.deb && grep -q ^PGHERD_LOG_LEVEL=debug /etc/pgherd/api.env")
	d.says(t, "systemctl is-enabled pgherd-api pgherd-agent", "enabled\nenabled\n")

	d.says(t, "dpkg --purge pgherd pgherd-svc 2>&1", "pgherd: kept: /etc/pgherd/control\n", "pgherd: kept: /etc/pgherd/agent\n",
		"pgherd: kept: /var/lib/pgherd-agent\n")
	d.does(t, "cat "+kept+" && ! ls /etc/pgherd/*.env && ! test -e /var/lib/pgherd-pooler && id pgherd-agent")
	d.does(t, "dpkg --install /"+now+"/pgherd_*.deb && test $(stat --format %U /etc/pgherd/control/keyring.json) = root")
	d.says(t, "! systemctl is-enabled pgherd-api pgherd-agent", "disabled\ndisabled\n")
}

// isUpgraded upgrades to a version that explains a setting in other words, without anybody to ask: what the operator has changed
// stays, and so does what is enabled.
func (d debian) isUpgraded(t *testing.T) {
	t.Helper()
	d.does(t, "[ -z \"$(dpkg-query --show --showformat '${Conffiles}' pgherd)\" ]")
	d.does(t, "cp /usr/share/pgherd/agent.env /etc/pgherd/api.env /root/")
	d.does(t, "dpkg --install /"+now+"/*.deb < /dev/null && ! cmp --silent /usr/share/pgherd/agent.env /root/agent.env")
	d.says(t, "pgherd --version; svc --version", now+" ("+commit+")")
	d.does(t, "cmp /etc/pgherd/api.env /root/api.env && cd /etc/pgherd && grep -q ^PGHERD_LOG_LEVEL=debug agent.env && ls batch.env")
	d.says(t, "systemctl is-enabled pgherd-api pgherd-agent", "enabled\nenabled\n")
}

// refusesToGoBack installs an older version: nothing changes, until somebody says that it is meant.
func (d debian) refusesToGoBack(t *testing.T) {
	t.Helper()
	out, err := d.tries(t, "dpkg --install /"+before+"/pgherd_*.deb")
	if err == nil || !strings.Contains(out, "PGHERD_DOWNGRADE=yes") {
		t.Errorf("%v\n%s", err, out)
	}
	d.says(t, "pgherd --version && [ -z \"$(dpkg --audit)\" ]", now+" ("+commit+")")
	d.says(t, "PGHERD_DOWNGRADE=yes dpkg --install /"+before+"/pgherd_*.deb && pgherd --version", before+" ("+commit+")")
	d.says(t, "dpkg --install /"+now+"/pgherd_*.deb && pgherd --version", now+" ("+commit+")")
}

// findsWhatMakeInstalled installs beside what "make install" has put into /usr/local, which systemd and shells take first.
func (d debian) findsWhatMakeInstalled(t *testing.T) {
	t.Helper()
	again := "dpkg --install /" + now + "/pgherd_*.deb 2>&1"
	for _, file := range []string{"/usr/local/bin/pgherd", "/usr/local/lib/systemd/system/pgherd-api.service"} {
		d.says(t, "mkdir -p "+filepath.Dir(file)+" && : > "+file+" && "+again+" && rm "+file, "make uninstall", file)
	}
	if out := d.does(t, again); strings.Contains(out, "make uninstall") {
		t.Error(out)
	}
}

// everySettingIsAComment starts each host with every line of its file uncommented that has a value: it complains of nothing but
// what this machine lacks.
func (d debian) everySettingIsAComment(t *testing.T) {
	t.Helper()
	for _, host := range []string{"api", "batch", "dashboard", "agent"} {
		settings := "/usr/share/pgherd/" + host + ".env"
		d.does(t, "! grep -qv '^#\\|^$' "+settings+" && ! grep -v ^# /etc/pgherd/"+host+".env")
		out, err := d.tries(t, "grep '^#PGHERD_' "+settings+" | grep -v '=$' | sed 's/^#//' > /settings; "+
			"while IFS= read -r line; do export \"$line\"; done < /settings; timeout 10 pgherd "+host)
		if err == nil || strings.Contains(out, "does not take") {
			t.Errorf("%s: %v\n%s", host, err, out)
		}
	}
}
