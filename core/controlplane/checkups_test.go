package controlplane_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/ports"
)

// brief looks again for a moment only.
var brief = checkups.Options{Patience: 13 * time.Microsecond}

// examined is what the doctor finds of the world's server.
func (w *world) examined(o checkups.Options) []checkups.Diagnosis {
	w.t.Helper()
	o.Patience = brief.Patience
	return must(w.Operator.Examine(w.ctx, w.machine, o))(w.t)
}

func (w *world) wantFindings(codes ...doctor.Code) {
	w.t.Helper()
	var found []doctor.Code
	for _, d := range w.examined(brief) {
		w.t.Log(d)
		found = append(found, d.Code)
	}
	slices.Sort(found)
	if slices.Sort(codes); !slices.Equal(slices.Compact(found), codes) {
		w.t.Errorf("found %v, want %v", found, codes)
	}
}

// treated is a database with a role, settings, networks and a verified backup, in which nothing is wrong.
func treated(t *testing.T) (*world, database.Record) {
	t.Helper()
	w := newWorld(t)
	db := w.made("shop").Record
	must(w.setsTimeouts(db.ID, querytimeout.Short, "one"))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db.ID), office, ""))(t)
	must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	w.work(w.ControlPlane)
	w.wantFindings()
	return w, db
}

func TestTheDoctorRepairs(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(w *world, db database.Record)
		codes  []doctor.Code
	}{
		"closed gates": {
			func(w *world, db database.Record) { w.server.SetOpen(db.ID, false) },
			[]doctor.Code{doctor.AccessDiffers, doctor.GateDiffers, doctor.LoginDiffers},
		},
		"what a restored server has lost": {
			func(w *world, db database.Record) { w.server.Rewind(db.ID) },
			[]doctor.Code{doctor.AllowlistDiffers, doctor.SettingsDiffer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, db := treated(t)
			c.damage(w, db)
			w.wantFindings(c.codes...)
			entries := len(w.log(db.ID))
			found := w.examined(checkups.Options{Repair: true})
			done := map[doctor.Repair]bool{}
			for _, d := range found {
				if !d.Repaired || d.Failed != nil {
					t.Errorf("%s is not repaired: %v", d.Code, d.Failed)
				}
				done[d.Repair()] = true
			}
			w.wantFindings()
			w.timeoutsAre(db.ID, querytimeout.Short)
			w.enforced(db.ID)
			log := w.log(db.ID)
			if n := len(log) - entries; n != len(done) || log[0].Action != audit.DoctorRepaired || log[0].Actor != audit.Operator {
				t.Errorf("%d entries for %d repairs: %+v", n, len(done), log[0])
			}
		})
	}
}

// A repair that the agent refuses is told, and nothing is made of it.
func TestARepairThatFails(t *testing.T) {
	w, db := treated(t)
	w.server.SetOpen(db.ID, false)
	w.refusing("SetAccess", command.ReasonUnavailable)
	for _, d := range w.examined(checkups.Options{Repair: true}) {
		if d.Repaired || d.Failed == nil {
			t.Errorf("%s: repaired is %t, %v", d.Code, d.Repaired, d.Failed)
		}
	}
	w.wantFindings(doctor.AccessDiffers, doctor.GateDiffers, doctor.LoginDiffers)
}

// Files are missing, damaged, or of nobody. None is touched.
func TestTheDoctorReadsFiles(t *testing.T) {
	w, db := treated(t)
	list, _, err := w.Backups.List(w.ctx, w.reached(db.ID), ports.Page{})
	ok(t, err)
	deep := checkups.Options{Deep: true, Repair: true}
	if found := w.examined(deep); len(found) > 0 {
		t.Errorf("of a sound file: %v", found)
	}
	w.server.SwapManifest(db.ID, list[0].Filename)
	w.wantFindings()
	if found := w.examined(deep); len(found) != 1 || found[0].Code != doctor.FileDamaged || found[0].Repaired {
		t.Errorf("of another manifest: %v", found)
	}
	must(ports.Ask(w.ctx, must(w.fleet.Agent(w.machine))(t), command.DeleteBackup{DatabaseID: db.ID, Filename: list[0].Filename}))(t)
	w.wantFindings(doctor.FileMissing)
}

// Inside a database a customer's own doing is a notice. The doctor leaves work alone there too, and goes on where one database
// cannot be looked into.
func TestTheDoctorLooksInside(t *testing.T) {
	w, db := treated(t)
	second := w.made("second").Record
	deep := func(want ...doctor.Code) {
		t.Helper()
		var codes []doctor.Code
		for _, d := range w.examined(checkups.Options{Deep: true, Repair: true}) {
			if codes = append(codes, d.Code); d.Repaired || d.Failed != nil {
				t.Errorf("%s is repaired: %v", d, d.Failed)
			}
		}
		slices.Sort(codes)
		if !slices.Equal(slices.Compact(codes), want) {
			t.Errorf("found %v, want %v", codes, want)
		}
	}
	deep()
	w.server.SetRights(db.ID, command.Rights{Unread: "somebody's lock is in the way"})
	w.server.SetRights(second.ID, command.Rights{PublicOwner: "postgres"})
	w.wantFindings()
	deep(doctor.GroupRights, doctor.RightsUnread, doctor.SchemaOwner)
	w.server.SetRights(db.ID, command.Rights{})
	must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	deep(doctor.GroupRights, doctor.SchemaOwner) // of the second alone
	w.work(w.ControlPlane)
	deep(doctor.GroupRights, doctor.SchemaGiven, doctor.SchemaOwner)

	w.refusing("AskRights", command.ReasonFailed)
	deep(doctor.RightsUnread)
	w.refusing("AskRights", command.ReasonNotFound)
	deep()
	w.refusing("AskRights", command.ReasonOtherProtocol)
	deep(doctor.OtherProtocol)
	w.refusing("AskRights", command.ReasonUnavailable)
	deep(doctor.ServerRefuses)
}

// What an operation or a change is under way on is left alone, whatever it looks like meanwhile.
func TestTheDoctorLeavesWorkAlone(t *testing.T) {
	w, db := treated(t)
	must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	w.server.SetOpen(db.ID, false)
	w.wantFindings()
	must(w.Work.RunNext(w.ctx))(t) // its job runs
	w.wantFindings()
	w.work(w.ControlPlane)
	w.wantFindings(doctor.AccessDiffers, doctor.GateDiffers, doctor.LoginDiffers)
}

func TestTheDoctorOfAnotherKindOfServer(t *testing.T) {
	w, _ := treated(t)
	w.server.SetUnreachable(true)
	w.wantFindings(doctor.ServerUnreachable)
	w.server.SetUnreachable(false)
	w.outdated(true)
	w.wantFindings(doctor.OtherProtocol)
}

// A database that the agent has and nobody knows is told, and stays.
func TestADatabaseWithoutARecord(t *testing.T) {
	w := newWorld(t)
	restore := w.store.Backup()
	db := w.made("shop").Record
	restore()
	for range 2 {
		if found := w.examined(checkups.Options{Repair: true}); len(found) != 1 || found[0].Code != doctor.DatabaseUnknown {
			t.Errorf("found %v", found)
		}
	}
	if !slices.Contains(w.server.Databases(), db.Name) {
		t.Error("it is gone")
	}
}
