package crash_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/role"
)

// since is something that has happened to a database since the moment that the metadata went back to, and what an operator does
// about it, as docs/operate/metadata-restore.md says.
type since struct {
	name    string
	before  func(t *testing.T, d *drifted) // nil: nothing
	happens func(t *testing.T, d *drifted)
	// decides is done before the operator says that the metadata count; nil: nothing is to be decided, --repair does it.
	decides func(t *testing.T, d *drifted)
	found   doctor.Code
}

// drifted is a database that something happens to.
type drifted struct {
	guest
	w    *world
	role wire.Role
	file string
	held func() // ends what holds a backup up
}

func (d *drifted) api() *apiclient.Client { return d.user.at(d.w.api) }

// order is a command of the operator's about the database.
func (d *drifted) order(verb string, more ...string) []string {
	args := append(strings.Fields(verb), "--database", string(d.db.ID), "--reason", "the metadata went back")
	return append(args, more...)
}

// orders has it carried out.
func (d *drifted) orders(t *testing.T, verb string, more ...string) {
	t.Helper()
	must(d.w.Admin(soon(t), d.order(verb, more...)...))(t)
}

// ofFiles is orders for what answers with a list.
func (d *drifted) ofFiles(t *testing.T, verb string, more ...string) {
	t.Helper()
	p := must(d.w.LaunchAdmin("", d.order(verb, more...)...))(t)
	noError(t, p.AwaitEnd(soon(t)))
}

func makesRole(t *testing.T, d *drifted) {
	t.Helper()
	d.role = must(d.api().Roles.Create(soon(t), d.db.ID, wire.CreateRole{
		DisplayName: "report", AccessProfile: role.ReadOnly, ConnectionLimit: 2,
	}))(t)
}

func backsUp(t *testing.T, d *drifted) {
	t.Helper()
	d.file = must(stack.BackUp(soon(t), d.api(), d.db.ID))(t).Filename
}

func rotates(t *testing.T, d *drifted) {
	t.Helper()
	for _, l := range []database.Login{database.RuntimeLogin, database.ReadonlyLogin, database.OwnerLogin} {
		must(d.api().Logins.Rotate(soon(t), d.db.ID, l, wire.Disconnect{ConfirmDisconnect: true}))(t)
	}
}

func adoptsBackups(t *testing.T, d *drifted) {
	t.Helper()
	d.ofFiles(t, "backup adopt")
}

func dropsRole(t *testing.T, d *drifted) {
	t.Helper()
	d.orders(t, "database drop-role", "--role", d.role.Username, "--yes")
}

var happened = []since{
	{name: "moved", found: doctor.DatabaseElsewhere, before: func(t *testing.T, d *drifted) {
		must(d.conn.ExecContext(soon(t), "DROP TABLE item; CREATE TABLE item (n int PRIMARY KEY)"))(t)
	}, happens: func(t *testing.T, d *drifted) {
		must(d.w.Admin(soon(t), "server", "enable", "--server", "two"))(t)
		d.orders(t, "database move", "--to", "two", "--forward", "0s", "--wait")
		must(d.w.Admin(soon(t), "server", "disable", "--server", "two"))(t)
	}, decides: func(t *testing.T, d *drifted) { d.orders(t, "database adopt", "--server", "two", "--wait") }},
	{name: "deleted", found: doctor.ServiceDiffers, happens: deleted, decides: adoptsBackups},
	{
		name: "deleted, and not brought back", found: doctor.ServiceDiffers, happens: deleted,
		decides: func(t *testing.T, d *drifted) {
			d.orders(t, "database finish-deletion", "--yes")
			d.w.quiet(t)
			adoptsBackups(t, d)
		},
	},
	{name: "rotated", found: doctor.CredentialDiffers, happens: rotates, decides: rotates},
	{name: "a role made", found: doctor.RoleUnknown, happens: makesRole, decides: func(t *testing.T, d *drifted) {
		d.orders(t, "database adopt-role", "--role", d.role.Username)
		list := must(d.api().Roles.List(soon(t), d.db.ID, false))(t)
		must(d.api().Roles.Change(soon(t), d.db.ID, list[0].RoleID, wire.ChangeRole{Kind: role.Rotation, ConfirmDisconnect: true}))(t)
	}},
	{name: "a role made, and not kept", found: doctor.RoleUnknown, happens: makesRole, decides: dropsRole},
	{name: "a role deleted", found: doctor.RoleMissing, before: makesRole, happens: func(t *testing.T, d *drifted) {
		must(d.api().Roles.Delete(soon(t), d.db.ID, d.role.RoleID, wire.DeleteRole{Confirm: true}))(t)
	}, decides: dropsRole},
	{name: "a backup made", found: doctor.FileUnknown, happens: backsUp, decides: adoptsBackups},
	{name: "a backup deleted", found: doctor.FileMissing, before: backsUp, happens: func(t *testing.T, d *drifted) {
		list := must(d.api().Backups.List(d.db.ID).Page(soon(t), apiclient.Page{}))(t).Data
		noError(t, d.api().Backups.Delete(soon(t), d.db.ID, list[0].Filename))
	}, decides: func(t *testing.T, d *drifted) { d.ofFiles(t, "backup forget", "--yes") }},
	{name: "a backup begun", found: doctor.JobLeft, happens: func(t *testing.T, d *drifted) {
		d.held = d.holdUp(t)
		d.backUp(t, d.w.api)
		eventually(t, "it is begun", func() (bool, string) {
			o := must(d.api().Operations.List(d.db.ID).Page(soon(t), apiclient.Page{}))(t).Data[0]
			return o.Status == "running", string(o.Status)
		})
	}},
	{name: "suspended", found: doctor.SettingsDiffer, happens: func(t *testing.T, d *drifted) {
		must(d.w.Admin(soon(t), "account", "suspend", "--account", d.user.ID, "--reason", "they owe us"))(t)
		eventually(t, "it is closed", func() (bool, string) {
			return d.conn.PingContext(soon(t)) != nil, "it is open"
		})
	}},
}

func deleted(t *testing.T, d *drifted) {
	t.Helper()
	asked := must(d.api().Databases.Delete(soon(t), d.db.ID))(t)
	must(d.api().Operations.Await(soon(t), asked.Operation.ID, stack.Pause(0)))(t)
}

// Whatever has happened since the moment that the metadata go back to has an end that the page names, and then the doctor finds
// nothing at any server.
func TestTheRunbookOfMetadataEnds(t *testing.T) {
	t.Parallel()
	cases := sample.OneIn(t, 4, happened)
	w := startStack(t)
	other := stacktest.Start(soon(t), t, stack.Options{LeaseHold: leaseHold}, stack.CrashPoints)
	must(w.Register(soon(t), "two", other))(t)
	must(w.Admin(soon(t), "server", "disable", "--server", "two"))(t) // databases are made on the first one
	all := make([]*drifted, len(cases))
	for i, c := range cases {
		all[i] = &drifted{guest: newLoadedGuest(t, w, "drifted"), w: w}
		must(w.Admin(soon(t), "enroll", "--database", string(all[i].db.ID), "--route", "delete"))(t)
		if c.before != nil {
			c.before(t, all[i])
		}
	}
	w.quiet(t)
	restore := w.metadataBackup(t)
	for i, c := range cases {
		c.happens(t, all[i])
	}
	restore(t)
	servers := []string{w.ServerID(), "two"}
	found := map[string]bool{}
	for _, s := range servers {
		for _, d := range must(w.Doctor(soon(t), "--server", s, "--patience", "100ms"))(t) {
			t.Logf("%s: %s", d.Code, d.Finding)
			found[d.Code+" "+d.DatabaseID] = true
		}
	}
	for i, c := range cases {
		if !found[string(c.found)+" "+string(all[i].db.ID)] {
			t.Errorf("%s: the doctor does not find %s", c.name, c.found)
		}
		if c.decides != nil {
			c.decides(t, all[i])
		}
	}
	w.quiet(t)
	confirm := must(w.LaunchAdmin("", "metadata", "confirm", "--yes", "--reason", "it is so"))(t)
	noError(t, confirm.AwaitEnd(soon(t)))
	for _, s := range servers {
		for _, d := range must(w.Doctor(soon(t), "--server", s, "--repair"))(t) {
			t.Logf("%s: %s: %s", d.Code, d.Finding, d.Outcome)
		}
	}
	for _, d := range all {
		if d.held != nil {
			d.held()
		}
	}
	w.quiet(t)
	for _, s := range servers {
		eventually(t, "the doctor finds nothing at "+s, func() (bool, string) {
			found, err := w.Doctor(soon(t), "--server", s)
			return err == nil && len(found) == 0, fmt.Sprint(found, err)
		})
	}
	for i, c := range cases {
		if s := all[i].recorded(t); s != database.Active && c.name != "deleted, and not brought back" {
			t.Errorf("%s: it is %s", c.name, s)
		}
	}
}

// recorded is the status of the database, also of a deleted one.
func (d *drifted) recorded(t *testing.T) (s database.Status) {
	t.Helper()
	noError(t, d.w.meta.QueryRowContext(soon(t), "SELECT status FROM databases WHERE id = $1", string(d.db.ID)).Scan(&s))
	return s
}
