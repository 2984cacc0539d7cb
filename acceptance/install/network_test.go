//go:build linux && machines

package install

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// addresses are those of the page. This process is the customer, who has the first one, and the object store.
var addresses = map[string]string{
	"customer": "10.0.0.1", "meta": "10.0.0.10", "api1": "10.0.0.11", "api2": "10.0.0.12", "lb": "10.0.0.20", "db1": "10.0.0.21",
	"db2": "10.0.0.22", "db3": "10.0.0.23", "s3": "10.0.0.30",
}

// public are the names that lead to machines from outside.
var public = map[string]string{
	"api.example.com": "lb", "db.example.com": "lb", "db1.example.com": "db1", "db2.example.com": "db2", "db3.example.com": "db3",
	"s3.example.com": "s3",
}

// hostsFile is what stands in for a name server.
func hostsFile() string {
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n")
	for name, address := range addresses {
		fmt.Fprintf(&text, "%s %s.internal.example %[2]s\n", address, name)
	}
	for name, leads := range public {
		fmt.Fprintf(&text, "%s %s\n", addresses[leads], name)
	}
	return text.String()
}

// system runs commands as they stand.
func system(t *testing.T, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if out, err := exec.Command("/bin/sh", "-ec", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// newNetwork makes machines with a root, a name and a network of their own, and a switch that joins them and the customer.
func newNetwork(t *testing.T, root string, names ...string) map[string]*machine {
	t.Helper()
	hosts := filepath.Join(root, "hosts")
	check.NoError(t, os.WriteFile(hosts, []byte(hostsFile()), 0o644))
	system(t, "mount --bind "+hosts+" /etc/hosts", "ip link set lo up", "ip link add switch type bridge",
		"ip addr add "+addresses["customer"]+"/24 dev switch", "ip addr add "+addresses["s3"]+"/24 dev switch", "ip link set switch up")
	tools := check.Must(toolchain.Find())(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(root, "ca")))(t)
	all := map[string]*machine{}
	for _, name := range names {
		m := &machine{
			name: name, root: filepath.Join(root, name, "root"), apart: true, source: filepath.Join(root, "source"), tools: tools, ca: ca,
			accepted: versionsOf(t, tools), ports: map[string]string{"5432": "5432"}, others: all, launcher: newLauncher(),
		}
		m.services = newServices(m)
		all[name] = m
		m.mount(t)
		m.connect(t)
		m.furnish(t)
	}
	return all
}

// mount gives the machine a root: this machine's, on top of which it writes, and what is made for all.
func (m *machine) mount(t *testing.T) {
	t.Helper()
	layers := filepath.Dir(m.root)
	check.NoError(t, os.Mkdir(layers, 0o755))
	system(t, "mount -t tmpfs -o mode=755 tmpfs "+layers) // what is written may not be below what it is written on top of
	for _, dir := range []string{"root", "upper", "work"} {
		check.NoError(t, os.Mkdir(filepath.Join(layers, dir), 0o755))
	}
	system(t, fmt.Sprintf("mount -t overlay overlay -o lowerdir=/,upperdir=%s/upper,workdir=%[1]s/work %s", layers, m.root))
	// Links that lead to this machine's own / are followed by who writes from outside.
	system(t, fmt.Sprintf("rm -rf %s/var/run && ln -s ../run %[1]s/var/run && mkdir -p %[1]s/run %[1]s/tmp", m.root),
		fmt.Sprintf("mount -t tmpfs -o mode=755 tmpfs %s/run && mount -t proc proc %[1]s/proc", m.root),
		fmt.Sprintf("mount --bind /dev %s/dev && mount -t tmpfs -o mode=1777 tmpfs %[1]s/dev/shm", m.root))
	for _, dir := range []string{m.source, filepath.Join(check.Must(toolchain.Root())(t), toolchain.Dir)} {
		system(t, fmt.Sprintf("mkdir -p %s && mount --bind %s %[1]s", m.path(dir), dir))
	}
	check.NoError(t, os.WriteFile(m.path("etc/hosts"), []byte(hostsFile()), 0o644))
}

// connect gives the machine's thread, and so its processes, a name and a network, and plugs it into the switch.
func (m *machine) connect(t *testing.T) {
	t.Helper()
	var thread int
	check.NoError(t, on(m.launcher, func() error {
		thread = unix.Gettid()
		return errors.Join(unix.Unshare(unix.CLONE_NEWNET|unix.CLONE_NEWUTS), unix.Sethostname([]byte(m.name)))
	}))
	system(t, fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", m.name, thread), "ip link set "+m.name+" up")
	m.plug(t, true)
	out, err := m.output(exec.Command("/bin/sh", "-ec",
		"ip link set lo up; ip addr add "+addresses[m.name]+"/24 dev eth0; ip link set eth0 up"))
	check.NoError(t, err, string(out))
}

// plug plugs the machine's cable into the switch, or leaves it out: nothing that is sent arrives then, and nobody is told.
func (m *machine) plug(t *testing.T, in bool) {
	t.Helper()
	if in {
		system(t, "ip link set "+m.name+" master switch")
		return
	}
	system(t, "ip link set "+m.name+" nomaster")
}
