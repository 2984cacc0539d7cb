package conformance

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Switches is the suite of ports.Switches; the maintenance window shows in Admissions.
func Switches(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"features are on or off", featuresSwitch},
		{"a database is enrolled route by route", enrolmentsSwitch},
		{"new databases of an account may be enrolled by themselves", autoEnrolSwitches},
	})
}

func nameServer(server id.ServerID) func(*database.Record) {
	return func(r *database.Record) { r.ServerID = server }
}

func featuresSwitch(w *world) {
	set := func(name string, on bool, want ...string) {
		w.Helper()
		w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Switches().SetFeature(ctx, name, on) })
		w.view(func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Switches().Features(ctx)
			w.equal("the features after "+name, got, want)
			return err
		})
	}
	set("restore", true, "restore")
	set("clone", true, "clone", "restore")
	set("clone", true, "clone", "restore")
	set("restore", false, "clone")
	set("restore", false, "clone")
}

func enrolmentsSwitch(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	enrolled := func(db id.DatabaseID, route string, want bool) {
		w.Helper()
		w.view(func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Switches().Enrolled(ctx, db, route)
			w.equal("enrolled for "+route, got, want)
			return err
		})
	}
	enroll := func(ctx context.Context, tx ports.Tx) error { return tx.Switches().Enroll(ctx, r.ID, "clone") }
	unenroll := func(ctx context.Context, tx ports.Tx) error { return tx.Switches().Unenroll(ctx, r.ID, "clone") }
	enrolled(r.ID, "clone", false)
	w.update(enroll)
	w.update(enroll)
	enrolled(r.ID, "clone", true)
	enrolled(r.ID, "restore", false)
	enrolled(other.ID, "clone", false)
	w.update(unenroll)
	w.update(unenroll)
	enrolled(r.ID, "clone", false)
	w.refused("enrolling no database", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().Enroll(ctx, newID[id.DatabaseID](), "clone")
	})
}

func autoEnrolSwitches(w *world) {
	for _, on := range []bool{false, true, true, false, false} {
		w.update(func(ctx context.Context, tx ports.Tx) error {
			return tx.Switches().SetAutoEnroll(ctx, w.account.ID, on)
		})
		w.view(func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Switches().AutoEnroll(ctx, w.account.ID)
			w.equal("enrolled by itself", got, on)
			return err
		})
	}
	w.refused("an account that does not exist", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().SetAutoEnroll(ctx, newID[id.AccountID](), true)
	})
}
