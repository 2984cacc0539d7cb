//go:build linux && machines

package install

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// The releases of the year. They are made of the same sources.
const before, now = "v1.0.0", "v1.1.0"

// TestTheOperatorsYear does what an operator does in a year with two database servers and two machines of the control plane, by
// the pages of docs/operate, while an application works all the time. It says for how long that waited at most in each chapter.
func TestTheOperatorsYear(t *testing.T) {
	if root := os.Getenv(insideVariable); root != "" {
		newYear(t, root).passes(t)
		return
	}
	if os.Getuid() != 0 {
		t.Fatal("machines with networks of their own take root")
	}
	root := openFolder(t)
	source := filepath.Join(root, "source")
	copySources(t, source)
	copyPackaging(t, source)
	pack(t, root, before)
	pack(t, root, now)
	const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
	inside(t, root, "60m", &syscall.SysProcAttr{Cloneflags: namespaces}, "mount --make-rprivate / && mount -t proc proc /proc")
}

// year is an installation, with who works at it.
type year struct {
	*walk
	root        string
	customer    *customer
	application *application
}

func newYear(t *testing.T, root string) *year {
	t.Helper()
	publish(t, root, before)
	all := newNetwork(t, root, "db1", "db2", "db3", "meta", "api1", "api2", "lb")
	endWith(t, all)
	ca := check.Must(cluster.OpenCA(filepath.Join(root, "ca")))(t)
	store := check.Must(objectstore.OpenAt(t.TempDir(), addresses["s3"]+":443", ca, "s3.example.com", addresses["s3"]))(t)
	t.Cleanup(store.Kill)
	y := &year{walk: newWalk(t, all), root: root}
	y.meant = meant
	y.filled = strings.NewReplacer("SECRET KEY", objectstore.SecretKey, "KEY-ID", objectstore.AccessKey,
		// The page of one machine says so, where there is no load balancer and listeners are the machine's own.
		"https://api.example.com:8443", apiURL, "http://127.0.0.1:808", `http://$(hostname --ip-address):808`)
	return y
}

// meant are the machines that pages with one machine of the control plane mean by that.
func meant(b block) []string {
	switch {
	case b.where != "api":
		return nil
	case strings.Contains(b.text, "runuser -u postgres"):
		return []string{"meta"} // which has the metadata
	case strings.Contains(b.text, ".deb") || strings.HasPrefix(b.text, "systemctl st"):
		return []string{"api1", "api2"}
	}
	return []string{"api1"}
}

// in says whether a block is of a section.
func in(section string) func(block) bool { return func(b block) bool { return b.section == section } }

// most is for how long an application may wait in a chapter that leaves its database in service. The machine may be busy.
const most = check.Patience

// passes has all chapters pass, one after the other.
func (y *year) passes(t *testing.T) {
	t.Helper()
	for _, chapter := range []struct {
		name string
		do   func(*testing.T)
		most time.Duration // that the application waits
	}{
		{"install from the packages", y.installed, 0},
		{"the first database", y.firstDatabase, 0},
		{"a second server", func(t *testing.T) { y.joined(t, "db2") }, most},
		{"a machine is taken out of service", y.takenOutOfService, most},
		{"an agent's certificate is exchanged", y.certificateExchanged, most},
		{"a machine is killed", y.killed, most},
		{"a machine is cut off", y.cutOff, most},
		{"a database moves", y.moved, most},
		{"a server is drained, and a machine is killed", y.drained, most},
		{"a server is lost, and removed", y.lost, 2 * check.Patience},
		{"the metadata of an earlier moment", y.metadataRestored, most},
		{"a customer is suspended", y.suspended, check.Patience},
		{"another server in the place of the lost one", func(t *testing.T) { y.joined(t, "db3") }, most},
		{"an upgrade", y.upgraded, most},
		{"a server is taken away", y.takenAway, most},
	} {
		began := time.Now()
		waited := func() time.Duration { return 0 }
		if y.application != nil {
			waited = y.application.chapter()
		}
		if !t.Run(chapter.name, chapter.do) {
			return
		}
		w := waited()
		t.Logf("%s: it took %s, and an application waited %s at most", chapter.name, time.Since(began).Round(time.Second),
			w.Round(10*time.Millisecond))
		if w > chapter.most {
			t.Errorf("%s: the application waited %s", chapter.name, w)
		}
	}
	y.application.end(t)
	y.customer.isTold(t)
	y.nothingIsFound(t)
}

// installed sets up a database server, the metadata, two machines and a load balancer.
func (y *year) installed(t *testing.T) {
	for _, where := range []string{"db1", "api"} {
		y.follow(t, "production.md", func(b block) bool { return b.section == fromPackages && b.where == where })
	}
	y.databaseServer(t, "db1")
	y.follow(t, "second-machine.md", func(b block) bool { return b.section != outOfService })
	y.metadataAreGuarded(t)
}

// databaseServer makes one, which keeps its backups and its archive in an object store.
func (y *year) databaseServer(t *testing.T, name string) {
	t.Helper()
	for _, part := range []struct {
		page   string
		wanted func(block) bool
	}{
		{"production.md", in("The database server")}, {"storage.md", func(block) bool { return true }},
		{"production.md", in("The archive")},
	} {
		y.followFor(t, part.page, name, "db1", part.wanted)
	}
}

// firstDatabase is the account's, with whom everything else is done.
func (y *year) firstDatabase(t *testing.T) {
	y.run(t, "pgherd", "api1", operators)
	y.follow(t, "production.md", in("The first database"))
	y.customer = newCustomer(t, y.walk)
	y.application = startApplication(t, y.customer)
}

// joined adds another server, installed as the first one.
func (y *year) joined(t *testing.T, name string) {
	t.Helper()
	y.followFor(t, "production.md", name, "db1", func(b block) bool { return b.where == "db1" && b.section == fromPackages })
	y.databaseServer(t, name)
	y.followFor(t, "servers.md", name, "db2", in("Servers"))
}

// nothingIsFound has the doctor find nothing.
func (y *year) nothingIsFound(t *testing.T) {
	t.Helper()
	if out := y.run(t, "pgherd", "api1", "pgherd admin doctor || true"); strings.TrimSpace(out) != "none" {
		t.Errorf("the doctor finds\n%s", out)
	}
}

// upgraded upgrades in place, one machine after the other.
func (y *year) upgraded(t *testing.T) {
	publish(t, y.root, now)
	installs := func(b block) bool { return b.section == upgrades && strings.Contains(b.text, ".deb") }
	prepares := func(b block) bool { return b.section == upgrades && strings.Contains(b.text, "agent init") }
	y.follow(t, "production.md", func(b block) bool {
		return installs(b) || b.section == upgrades && strings.Contains(b.text, "pgherd migrate")
	})
	y.followFor(t, "production.md", "db3", "db1", func(b block) bool { return installs(b) && b.where == "db1" })
	y.follow(t, "second-machine.md", in(outOfService))
	y.awaitReady(t)
	y.followFor(t, "second-machine.md", "api1", "api2", in(outOfService))
	y.awaitReady(t)
	for _, server := range []string{"db1", "db3"} {
		y.followFor(t, "production.md", server, "db1", prepares)
		if out := y.run(t, "pgherd", "api1", "pgherd admin server check --server "+server); !strings.Contains(out, now) {
			t.Errorf("the agent is another one:\n%s", out)
		}
	}
	for _, machine := range []string{"api1", "api2", "db1", "db3"} {
		if out := y.run(t, "root", machine, "pgherd --version"); !strings.Contains(out, now) {
			t.Errorf("%s has %s", machine, out)
		}
	}
}
