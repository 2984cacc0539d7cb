//go:build linux && machines

package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// TestASecondMachine follows docs/operate/second-machine.md. Then a machine of the control plane is taken out of service, killed,
// and cut off, each time while customers call the API and use the dashboard: nothing that is safe to repeat fails.
func TestASecondMachine(t *testing.T) {
	if root := os.Getenv(insideVariable); root != "" {
		followSecondPage(t, root)
		return
	}
	if os.Getuid() != 0 {
		t.Fatal("machines with networks of their own take root")
	}
	root := openFolder(t)
	build(t, filepath.Join(root, "source", "bin"))
	const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
	inside(t, root, "20m", &syscall.SysProcAttr{Cloneflags: namespaces}, "mount --make-rprivate / && mount -t proc proc /proc")
}

func followSecondPage(t *testing.T, root string) {
	t.Helper()
	copySources(t, filepath.Join(root, "source"))
	all := newNetwork(t, root, "db1", "meta", "api1", "api2", "lb")
	endWith(t, all)
	w := newWalk(t, all)
	w.follow(t, "production.md", func(b block) bool { return b.where == "db1" })
	w.follow(t, "second-machine.md", func(b block) bool { return b.section != outOfService })
	w.metadataAreGuarded(t)
	c := newCustomer(t, w)

	// Each is by itself a test, and goes on with the machines as they are.
	t.Run("taken out of service", func(t *testing.T) {
		end := c.load(t, never)
		w.follow(t, "second-machine.md", func(b block) bool { return b.section == outOfService })
		end()
	})
	t.Run("the agent's certificate is exchanged", func(t *testing.T) {
		all["api"] = all["api1"] // as the other page calls it
		defer delete(all, "api")
		w.run(t, "pgherd", "api", operators)
		end := c.load(t, never)
		w.follow(t, "servers.md", func(b block) bool {
			if b.section != exchanging {
				return false
			}
			if strings.HasPrefix(b.text, "mv ") {
				time.Sleep(time.Minute) // as the page says
			}
			return true
		})
		end()
	})
	t.Run("killed", func(t *testing.T) {
		c.lose(t, "api1", "api2", func() { all["api1"].kill(t); w.leave("api1") })
		w.run(t, "root", "api1", "systemctl start pgherd-api pgherd-batch pgherd-dashboard")
		w.awaitReady(t)
	})
	t.Run("cut off", func(t *testing.T) {
		c.lose(t, "api2", "api1", func() { all["api2"].plug(t, false) })
		all["api2"].plug(t, true)
		w.awaitReady(t)
	})
	c.isTold(t)
	if out := w.run(t, "pgherd", "api1", operators+"\npgherd admin doctor"); !strings.Contains(out, "none") {
		t.Errorf("the doctor finds\n%s", out)
	}
}

// operators begins a shell of somebody who runs the installation.
const operators = "export PGHERD_METADATA_URL_FILE=/etc/pgherd/control/metadata-url " +
	"PGHERD_KEYRING_FILE=/etc/pgherd/control/keyring.json"

const (
	outOfService = "Taking a machine out of service"
	exchanging   = "Exchanging an agent's certificate"
)

// metadataAreGuarded finds that nobody else gets in, and nobody without TLS.
func (w *walk) metadataAreGuarded(t *testing.T) {
	t.Helper()
	api, db := w.machines["api1"], w.machines["db1"]
	url := strings.TrimSpace(w.run(t, "root", "api1", "cat /etc/pgherd/control/metadata-url"))
	plain := strings.Replace(url, "sslmode=verify-full", "sslmode=disable", 1)
	for what, c := range map[string]struct {
		on        *machine
		url, says string
	}{
		"a host":          {api, url, ""},
		"without TLS":     {api, plain, "no encryption"},
		"another machine": {db, strings.Replace(url, "verify-full", "require", 1), "no pg_hba.conf entry"},
		"another name":    {api, strings.Replace(url, "meta.internal.example", addresses["meta"], 1), "does not match host name"},
	} {
		psql := exec.CommandContext(t.Context(), c.on.tools.Psql, "-X", "-At", c.url, "-c", "SELECT 1")
		psql.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "PGCONNECT_TIMEOUT=10"}
		out, err := c.on.output(psql)
		if (err == nil) != (c.says == "") || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
}

// awaitReady waits until HAProxy sends requests to every host.
func (w *walk) awaitReady(t *testing.T) {
	t.Helper()
	check.Eventually(t, "not every host is ready", func() bool {
		stat := w.run(t, "root", "lb", "echo 'show stat' | nc -NU /run/haproxy/admin.sock")
		up := 0
		for line := range strings.Lines(stat) {
			if fields := strings.Split(line, ","); len(fields) > 17 && strings.HasPrefix(fields[1], "api") && fields[17] == "UP" {
				up++
			}
		}
		return up == 4
	})
}

// leave forgets the shells on a machine, which ended with it.
func (w *walk) leave(machine string) {
	for name := range w.shells {
		if strings.HasSuffix(name, "@"+machine) {
			delete(w.shells, name)
		}
	}
}

// kill kills every process of the machine.
func (m *machine) kill(t *testing.T) {
	t.Helper()
	m.services.crash()
	var own string
	check.NoError(t, on(m.launcher, func() (err error) {
		own, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}))
	for _, dir := range check.Must(filepath.Glob("/proc/[0-9]*"))(t) {
		of, err := os.Readlink(dir + "/ns/net")
		if err != nil || of != own {
			continue // it has ended, or is another machine's
		}
		process := check.Must(strconv.Atoi(filepath.Base(dir)))(t)
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// lose loses a machine whose batch host has begun a backup, while customers go on. The other machine's ends it.
func (c *customer) lose(t *testing.T, lost, other string, lose func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*check.Patience)
	defer cancel()
	end := c.load(t, again)
	release := c.holdUp(t)
	c.walk.run(t, "root", other, "systemctl stop pgherd-batch")
	begun := check.Must(c.patient.Backups.Start(ctx, c.shop.ID))(t)
	check.Eventually(t, "nobody works at the backup", func() bool {
		return check.Must(c.patient.Operations.Get(ctx, begun.Operation.ID))(t).Status == operation.Running
	})
	c.walk.run(t, "root", other, "systemctl start pgherd-batch")
	lose()
	release()
	c.succeeds(ctx, t, begun.Operation.ID)
	next := check.Must(c.patient.Backups.Start(ctx, c.shop.ID))(t)
	c.succeeds(ctx, t, next.Operation.ID)
	end()
}

func (c *customer) succeeds(ctx context.Context, t *testing.T, of id.OperationID) {
	t.Helper()
	var o wire.Operation
	began := time.Now()
	check.Eventually(t, "the backup does not end", func() bool {
		o = check.Must(c.patient.Operations.Get(ctx, of))(t)
		return o.Status.Final()
	})
	t.Logf("a backup ends after %s", time.Since(began))
	if o.Status != operation.Succeeded {
		t.Errorf("the backup is %s: %+v", o.Status, o.Error)
	}
}

// crash kills whatever runs, and starts nothing again.
func (s *services) crash() {
	s.mu.Lock()
	all := s.running
	s.running = map[string]*service{}
	s.mu.Unlock()
	for _, one := range all {
		one.mu.Lock()
		one.stop = true
		_ = one.cmd.Process.Kill() // it may have ended
		one.mu.Unlock()
	}
	for _, one := range all {
		<-one.done
	}
}
