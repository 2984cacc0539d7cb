//go:build linux && machines

package install

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// operators begins a shell of somebody who runs the installation.
const operators = "export PGHERD_METADATA_URL_FILE=/etc/pgherd/control/metadata-url " +
	"PGHERD_KEYRING_FILE=/etc/pgherd/control/keyring.json"

const (
	outOfService = "Taking a machine out of service"
	exchanging   = "Exchanging an agent's certificate"
)

// takenOutOfService takes a machine of the control plane out of service, as for an upgrade, while customers call the API and use
// the dashboard: nothing fails.
func (y *year) takenOutOfService(t *testing.T) {
	end := y.customer.load(t, never)
	y.follow(t, "second-machine.md", in(outOfService))
	end()
}

// certificateExchanged exchanges the certificate of an agent that works.
func (y *year) certificateExchanged(t *testing.T) {
	end := y.customer.load(t, never)
	y.follow(t, "servers.md", func(b block) bool {
		if b.section != exchanging {
			return false
		}
		if strings.HasPrefix(b.text, "mv ") {
			time.Sleep(time.Minute) // as the page says
		}
		return true
	})
	end()
}

// killed kills a machine of the control plane that works: nothing that is safe to repeat fails.
func (y *year) killed(t *testing.T) {
	y.customer.lose(t, "api2", "api1", func() { y.kill(t, "api2") })
	y.bringBack(t, "api2")
}

// cutOff cuts a machine off behind the load balancer: nobody is told.
func (y *year) cutOff(t *testing.T) {
	y.customer.lose(t, "api1", "api2", func() { y.machines["api1"].plug(t, false) })
	y.machines["api1"].plug(t, true)
	y.awaitReady(t)
}

// bringBack starts the hosts of a machine that was killed.
func (y *year) bringBack(t *testing.T, machine string) {
	t.Helper()
	y.run(t, "root", machine, "systemctl start pgherd-api pgherd-batch pgherd-dashboard")
	y.awaitReady(t)
}

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
