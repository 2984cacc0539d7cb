//go:build linux && machines

package install

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

// moved moves the application's database while it works.
func (y *year) moved(t *testing.T) {
	y.follow(t, "servers.md", in("Moving a database"))
	y.isOn(t, "db2.example.com", "shop")
}

// drained drains the first server. A machine of the control plane dies in the middle, and the other one goes on.
func (y *year) drained(t *testing.T) {
	all := []string{"desk"}
	for _, name := range []string{"tea", "cup", "pot"} {
		made := check.Must(y.customer.patient.Databases.Create(t.Context(), wire.CreateDatabase{Name: name, DisplayName: name}))(t)
		if made.Host == "db1.example.com" {
			all = append(all, name)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended) // also where the drain fails, which is the test's end
		y.follow(t, "servers.md", in("Draining a server"))
	}()
	desk := y.customer.named(t, "desk").ID
	check.Eventually(t, "nothing moves", func() bool {
		all := check.Must(y.customer.patient.Operations.List(desk).Page(t.Context(), apiclient.Page{}))(t).Data
		return slices.ContainsFunc(all, func(o wire.Operation) bool { return o.Type == "move" && o.Status == operation.Running })
	})
	y.machines["api2"].kill(t)
	<-ended
	if t.Failed() {
		t.FailNow()
	}
	y.forget("api2")
	y.bringBack(t, "api2")
	y.isOn(t, "db2.example.com", all...)
	y.run(t, "pgherd", "api1", "pgherd admin server enable --server db1")
	y.nothingIsFound(t)
}

// lost loses the second server with all that is on it. Its databases come back on the first one.
func (y *year) lost(t *testing.T) {
	for _, name := range []string{"shop", "desk"} {
		of := y.customer.named(t, name)
		check.Eventually(t, "there is no window of "+name, func() bool {
			w, err := y.customer.patient.Recovery.GetWindow(t.Context(), of.ID)
			return err == nil && w.From != nil && w.From.Before(time.Now())
		})
	}
	y.machines["db2"].plug(t, false)
	at := time.Now()
	y.kill(t, "db2")
	y.again = true // before a while nobody is sure that it is gone
	y.follow(t, "servers.md", func(b block) bool { return b.section == gone && strings.Contains(b.text, "server recover") })
	y.again = false
	y.isOn(t, "db1.example.com", "shop", "desk")
	y.application.loses(t, at)
	y.follow(t, "servers.md", func(b block) bool { return b.section == gone && strings.Contains(b.text, "server remove") })
	y.nothingIsFound(t)
}

const gone = "A server that is gone for good"

// metadataRestored has the metadata be those of a moment before a database was made, which the page adopts: until its passwords
// are rotated, it takes those that it had.
func (y *year) metadataRestored(t *testing.T) {
	y.run(t, "pgherd", "api1", "pgherd admin installation snapshot")
	c := y.customer
	late := check.Must(c.patient.Databases.Create(t.Context(), wire.CreateDatabase{Name: "late", DisplayName: "late"}))(t)
	says := func(query string) string {
		t.Helper()
		m := c.walk.machines["lb"]
		out, err := m.customer(t.Context(), late.ConnectionString+"&sslrootcert="+m.path(trusted), query).CombinedOutput()
		check.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	says("CREATE TABLE item (n int PRIMARY KEY); INSERT INTO item VALUES (7)")
	begun := check.Must(c.patient.Backups.Start(t.Context(), late.ID))(t)
	c.succeeds(t.Context(), t, begun.Operation.ID)
	y.follow(t, "metadata-restore.md", func(b block) bool {
		if strings.Contains(b.text, "/rotate") {
			if has := says("SELECT n FROM item"); has != "7" {
				t.Errorf("the adopted database has %s", has)
			}
		}
		return true
	})
	if said := y.said["pgherd@api1"]; !strings.HasSuffix(strings.TrimSpace(said), "none") {
		t.Errorf("the doctor finds\n%s", said)
	}
	if is := c.named(t, "late"); is.ID != late.ID || is.Status != database.Active {
		t.Errorf("it is %+v", is)
	}
}

// suspended suspends the customer, and resumes them.
func (y *year) suspended(t *testing.T) {
	y.follow(t, "accounts.md", func(b block) bool { return strings.Contains(b.text, "account suspend") })
	_, err := y.customer.patient.Databases.Get(t.Context(), y.customer.shop.ID)
	var refused *apiclient.Error
	if !errors.As(err, &refused) || refused.Code != fault.AccountSuspended || !strings.Contains(refused.Message, "the bill of May") {
		t.Errorf("the customer is told %v", err)
	}
	check.Eventually(t, "the application works on", func() bool { return y.application.waits() > 6*time.Second })
	y.follow(t, "accounts.md", func(b block) bool { return strings.Contains(b.text, "account resume") })
	check.Eventually(t, "the application does not work again", func() bool { return y.application.waits() < time.Second })
}

// takenAway takes the first server away, and pgherd from its machine.
func (y *year) takenAway(t *testing.T) {
	y.follow(t, "servers.md", in("Taking a server away"))
	for _, one := range check.Must(y.customer.patient.Databases.List().Page(t.Context(), apiclient.Page{}))(t).Data {
		y.isOn(t, "db3.example.com", one.Name)
	}
	if all := y.run(t, "pgherd", "api1", "pgherd admin server list"); strings.Contains(all, "db1.") {
		t.Errorf("there is still\n%s", all)
	}
	if found := y.run(t, "root", "db1", "hash -r; command -v pgherd svc || true"); found != "" {
		t.Errorf("the machine has still %s", found)
	}
	y.nothingIsFound(t)
}

// isOn finds databases in service at a host.
func (y *year) isOn(t *testing.T, host string, names ...string) {
	t.Helper()
	for _, name := range names {
		if is := y.customer.named(t, name); is.Host != host || is.Status != database.Active {
			t.Errorf("%s is %s at %s", name, is.Status, is.Host)
		}
	}
}
