package store

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Switches is the suite of ports.Switches. The maintenance window shows in Admissions, too.
func Switches(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a maintenance window is open or not", maintenanceSwitches},
		{"features are on or off", featuresSwitch},
		{"a database is enrolled route by route", enrolmentsSwitch},
		{"new databases of an account may be enrolled by themselves", autoEnrolSwitches},
	})
}

func nameServer(server id.ServerID) func(*database.Record) {
	return func(r *database.Record) { r.ServerID = server }
}

// granted expects what is on for the installation and for a database.
func (w *world) granted(db id.DatabaseID, features, enrolments string) {
	w.Helper()
	got := read(w, ports.Tx.Switches, ports.Switches.Grants, db)
	w.equal("features", strings.Join(got.Features, " "), features)
	w.equal("enrolments", strings.Join(got.Enrolments, " "), enrolments)
}

func maintenanceSwitches(w *world) {
	for _, on := range []bool{false, true, true, false} {
		w.update(writing(ports.Tx.Switches, ports.Switches.SetMaintenance, on))
		w.equal("the window", read0(w, ports.Tx.Switches, ports.Switches.Maintenance), on)
	}
}

func featuresSwitch(w *world) {
	db := w.addDatabase("shop").ID
	set := func(name string, on bool, want string) {
		w.Helper()
		w.update(writing2(ports.Tx.Switches, ports.Switches.SetFeature, name, on))
		w.granted(db, want, "")
		w.granted("", want, "")
	}
	w.granted(db, "", "")
	set("restore", true, "restore")
	set("clone", true, "clone restore")
	set("clone", true, "clone restore")
	set("restore", false, "clone")
	set("restore", false, "clone")
}

func enrolmentsSwitch(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	enroll := func(route, want string) {
		w.Helper()
		w.update(writing2(ports.Tx.Switches, ports.Switches.Enroll, r.ID, route))
		w.granted(r.ID, "", want)
		w.granted(other.ID, "", "")
	}
	unenroll := writing2(ports.Tx.Switches, ports.Switches.Unenroll, r.ID, "clone")
	enroll("restore-upload", "restore-upload")
	enroll("clone", "clone restore-upload")
	enroll("clone", "clone restore-upload")
	w.update(unenroll)
	w.update(unenroll)
	w.granted(r.ID, "", "restore-upload")
	w.granted("", "", "")
	w.unknown("enrolling no database", writing2(ports.Tx.Switches, ports.Switches.Enroll, newID[id.DatabaseID](), "clone"))
}

func autoEnrolSwitches(w *world) {
	for _, on := range []bool{false, true, true, false, false} {
		w.update(writing2(ports.Tx.Switches, ports.Switches.SetAutoEnroll, w.account.ID, on))
		w.equal("enrolled by itself", read(w, ports.Tx.Switches, ports.Switches.AutoEnroll, w.account.ID), on)
	}
	w.unknown("an account that does not exist",
		writing2(ports.Tx.Switches, ports.Switches.SetAutoEnroll, newID[id.AccountID](), true))
}
