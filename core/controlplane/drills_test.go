package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/drills"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// drillWorld is a world with the databases "shop" and "blog", which are two days old, and a second process.
type drillWorld struct {
	*world
	log        *spy
	shop, blog id.DatabaseID
	second     *controlplane.ControlPlane
}

func newDrillWorld(t *testing.T) *drillWorld {
	t.Helper()
	w := &drillWorld{world: newWorld(t), log: &spy{}}
	w.ports.Journal = w.log
	w.ControlPlane, w.second = w.process(quick()), w.process(quick())
	w.shop, w.blog = w.made("shop").Record.ID, w.made("blog").Record.ID
	w.clock.Advance(48 * time.Hour)
	return w
}

// passes has both processes work for some time.
func (w *drillWorld) passes(d time.Duration) {
	w.t.Helper()
	const step = 10 * time.Minute
	for ; d > 0; d -= step {
		w.clock.Advance(min(d, step))
		ok(w.t, w.Rounds.Once(w.ctx))
		ok(w.t, w.second.Rounds.Once(w.ctx))
	}
}

// drilled are all drills, newest first.
func (w *drillWorld) drilled() []drill.Drill {
	w.t.Helper()
	return must(w.Operator.Drills(w.ctx, w.machine.ID, ports.Page{}))(w.t)
}

// ordered has a drill be done now.
func (w *drillWorld) ordered(of id.DatabaseID) drill.Drill {
	w.t.Helper()
	ok(w.t, w.Operator.OrderDrill(w.ctx, operator.DrillOrder{ServerID: w.machine.ID, DatabaseID: of}))
	ok(w.t, w.Rounds.Once(w.ctx))
	return w.drilled()[0]
}

// Each day a drill is of a random second of a random database, however many processes there are.
func TestEachDayHasADrill(t *testing.T) {
	w := newDrillWorld(t)
	w.passes(10 * 24 * time.Hour)
	list := w.drilled()
	if len(list) < 9 || len(list) > 11 {
		t.Fatalf("%d drills in ten days", len(list))
	}
	of, seconds := map[id.DatabaseID]bool{}, map[int]bool{}
	for i, d := range list {
		of[d.DatabaseID], seconds[d.BegunAt.Hour()] = true, true
		if d.Outcome != drill.Proven || d.Repeats || d.PointInTime.After(d.BegunAt) || d.TookMs != 3500 ||
			i > 0 && list[i-1].BegunAt.YearDay() == d.BegunAt.YearDay() {
			t.Errorf("%+v", d)
		}
	}
	if len(of) != 2 || len(seconds) < 3 {
		t.Errorf("of %v, in the hours %v", of, seconds)
	}
	equal(t, "told", count(append(w.log.said(w.shop), w.log.said(w.blog)...), "drill.proven"), len(list))
	equal(t, "questions", w.server.Calls("Drill"), len(list))
	plan := w.planOf()
	equal(t, "unproven since the last", plan.UnprovenSince.Equal(*list[0].EndedAt), true)
	w.clock.Advance(370 * 24 * time.Hour)
	w.passes(24 * time.Hour)
	if n := len(w.drilled()); n > 2 {
		t.Errorf("%d are on record after a year", n)
	}
}

func (w *drillWorld) planOf() (p drill.Plan) {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		p, err = tx.Drills().LockPlan(ctx, w.machine.ID)
		return err
	}))
	return p
}

// A drill that fails is repeated within the hour, of the same second, and not more often; who runs the service is told, and no
// customer.
func TestADrillThatFails(t *testing.T) {
	w := newDrillWorld(t)
	events := len(w.events())
	w.server.FailDrills("it lacks the mark")
	first := w.ordered(w.shop)
	if first.Outcome != drill.Failed || first.Why != "it lacks the mark" || first.Repeats {
		t.Fatalf("%+v", first)
	}
	w.passes(time.Hour)
	list := w.drilled()
	if len(list) != 2 || !list[0].Repeats || list[0].DatabaseID != w.shop || !list[0].PointInTime.Equal(first.PointInTime) {
		t.Fatalf("%+v", list)
	}
	w.passes(6 * time.Hour)
	equal(t, "drills", len(w.drilled()), 2)
	w.wantFindings(doctor.DrillFailed)
	equal(t, "told", count(w.log.said(w.shop), "drill.failed"), 2)
	equal(t, "events", len(w.events()), events)
	w.server.FailDrills("")
	w.passes(24 * time.Hour)
	equal(t, "the next one", w.drilled()[0].Outcome, drill.Proven)
	w.wantFindings()
}

// Where nothing is to be proven there is no drill, and nothing is unproven. Where no second can be had back yet, one is tried
// again soon.
func TestWhereThereIsNothingToProve(t *testing.T) {
	w := newWorld(t)
	x := &drillWorld{world: w, second: w.process(quick())}
	x.passes(3 * 24 * time.Hour)
	equal(t, "drills without a database", len(x.drilled()), 0)
	equal(t, "unproven", x.planOf().UnprovenSince == nil, true)
	made := w.made("shop").Record.ID
	w.server.SetArchiving(false)
	x.passes(3 * 24 * time.Hour)
	equal(t, "drills without an archive", len(x.drilled()), 0)
	equal(t, "unproven without an archive", x.planOf().UnprovenSince == nil, true)
	w.server.SetArchiving(true)
	w.refusing("RecoveryWindow", command.ReasonNotFound)
	x.passes(2 * 24 * time.Hour)
	equal(t, "drills without a window", len(x.drilled()), 0)
	equal(t, "unproven for long", w.clock.Now().Sub(*x.planOf().UnprovenSince) > 20*time.Hour, true)
	w.server.OnCall(nil)
	x.passes(90 * time.Minute)
	equal(t, "drills at last", len(x.drilled()), 1)
	equal(t, "of", x.drilled()[0].DatabaseID, made)
}

// A drill goes on over many rounds, whichever process asks, and over times when the agent does not answer. It is given up in the
// end.
func TestADrillThatTakesLong(t *testing.T) {
	w := newDrillWorld(t)
	w.server.HoldDrills(true)
	begun := w.ordered("")
	equal(t, "ended", begun.EndedAt == nil, true)
	refused(t, w.Operator.OrderDrill(w.ctx, operator.DrillOrder{ServerID: w.machine.ID}), fault.DatabaseStateConflict)
	w.passes(time.Hour)
	w.failing("Drill", 0, errors.New("the line is cut"))
	w.passes(20 * time.Minute)
	w.server.OnCall(nil)
	equal(t, "drills", len(w.drilled()), 1)
	w.server.HoldDrills(false)
	w.passes(10 * time.Minute)
	if list := w.drilled(); len(list) != 1 || list[0].ID != begun.ID || list[0].Outcome != drill.Proven {
		t.Errorf("%+v", list)
	}

	w.server.HoldDrills(true)
	second := w.ordered("")
	w.passes(drill.MostTime + 10*time.Minute)
	list := w.drilled()
	if d := list[0]; d.ID != second.ID || d.Outcome != drill.NotRun || !strings.Contains(d.Why, "no end") {
		t.Errorf("%+v", d)
	}
	w.passes(2 * time.Hour) // the agent has the other one still
	if d := w.drilled()[0]; d.ID == second.ID || d.EndedAt != nil {
		t.Errorf("%+v", d)
	}
}

// An agent that cannot do it says so, and it is tried again within the hour.
func TestADrillThatIsNotRun(t *testing.T) {
	for name, c := range map[string]struct{ begin, end func(w *drillWorld) }{
		"old agent": {func(w *drillWorld) { w.refusing("Drill", command.ReasonNoRoute) }, func(w *drillWorld) { w.server.OnCall(nil) }},
		"no database": {func(w *drillWorld) {
			w.refusing("Drill", command.ReasonNotFound)
		}, func(w *drillWorld) { w.server.OnCall(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDrillWorld(t)
			c.begin(w)
			d := w.ordered(w.shop)
			if d.Outcome != drill.NotRun || d.Why == "" {
				t.Fatalf("%+v", d)
			}
			c.end(w)
			w.passes(70 * time.Minute)
			equal(t, "the next one", w.drilled()[0].Outcome, drill.Proven)
		})
	}
}

// A process that is killed leaves the drill to another one.
func TestAProcessKilledInADrill(t *testing.T) {
	for _, point := range drills.CrashPoints {
		t.Run(point, func(t *testing.T) {
			w := newDrillWorld(t)
			ok(t, w.Operator.OrderDrill(w.ctx, operator.DrillOrder{ServerID: w.machine.ID}))
			dying := w.process(mortal(point))
			equal(t, "died", dies(func() { _ = dying.Rounds.Once(w.ctx) }), true)
			equal(t, "it goes on", w.drilled()[0].EndedAt == nil, true)
			w.passes(10 * time.Minute)
			if list := w.drilled(); len(list) != 1 || list[0].Outcome != drill.Proven {
				t.Errorf("%+v", list)
			}
		})
	}
}

// What is deleted while a drill is of it does no harm, also once it is purged.
func TestADatabaseThatGoesInADrill(t *testing.T) {
	w := newDrillWorld(t)
	w.server.HoldDrills(true)
	w.ordered(w.shop)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Remove(ctx, w.shop) }))
	w.server.HoldDrills(false)
	equal(t, "on record", len(w.drilled()), 0)
	w.passes(24 * time.Hour)
	if list := w.drilled(); len(list) == 0 || list[0].DatabaseID != w.blog || list[0].Outcome != drill.Proven {
		t.Errorf("%+v", list)
	}
}

// The last backup before the second is what it is compared with.
func TestADrillComparesWithTheBackupBefore(t *testing.T) {
	w := newDrillWorld(t)
	r := w.reached(w.shop)
	w.backUp(r)
	first := w.backups(r)[0]
	w.clock.Advance(time.Hour)
	at := w.clock.Now()
	w.clock.Advance(time.Hour)
	w.backUp(r)
	order := operator.DrillOrder{ServerID: w.machine.ID, DatabaseID: w.shop, At: &at}
	ok(t, w.Operator.OrderDrill(w.ctx, order))
	ok(t, w.Rounds.Once(w.ctx))
	d := w.drilled()[0]
	if d.Filename != first.Filename || d.ManifestSHA256 != first.ManifestSHA256 || !d.PointInTime.Equal(at) {
		t.Errorf("%+v", d)
	}
	if f := must(d.Found())(t); f.Facts.Backup == nil || f.Facts.Backup.Filename != first.Filename {
		t.Errorf("%+v", f)
	}
	equal(t, "the log", must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t)[0].What.Action, audit.DrillOrdered)
	for field, order := range map[string]operator.DrillOrder{
		"database": {ServerID: w.machine.ID, At: &at}, "server": {ServerID: id.ServerID(w.shop)},
		"database ": {ServerID: w.machine.ID, DatabaseID: id.DatabaseID(w.machine.ID)},
	} {
		refusedOn(t, field, w.Operator.OrderDrill(w.ctx, order), strings.TrimSpace(field))
	}
}

// The window shows the last drill of a database, or of another one of its server, and how far back moments are proven; there is
// a certificate of one's own.
func TestWhatIsProvenOfAWindow(t *testing.T) {
	w := newDrillWorld(t)
	window := func() (drill.Drill, bool) {
		s := must(w.Moments.Window(w.ctx, w.forRecovery(w.shop)))(t)
		if s.LastDrill == nil {
			return drill.Drill{}, false
		}
		return *s.LastDrill, s.ProvenFrom != nil
	}
	_, some := window()
	equal(t, "proven before", some, false)
	other := w.ordered(w.blog)
	if d, proven := window(); d.ID != other.ID || !proven {
		t.Errorf("%+v", d)
	}
	_, err := w.Certificates.IssueRecovery(w.ctx, w.forRecovery(w.shop))
	refused(t, err, fault.FeatureNotAvailable)
	key := must(w.Operator.CreateCertificateKey(w.ctx))(t)
	_, err = w.Certificates.IssueRecovery(w.ctx, w.forRecovery(w.shop))
	refused(t, err, fault.CertificateNotFound)
	own := w.ordered(w.shop)
	w.server.FailDrills("wrong")
	failed := w.ordered(w.shop)
	if d, proven := window(); d.ID != failed.ID || !proven {
		t.Errorf("%+v", d)
	}
	made := must(w.Certificates.IssueRecovery(w.ctx, w.forRecovery(w.shop)))(t)
	var says certificate.Recovery
	ok(t, json.Unmarshal(made.Document, &says))
	if says.DrillID != own.ID || says.KeyID != key.ID || says.DatabaseID != w.shop || says.Database != "shop" {
		t.Errorf("%s", made.Document)
	}
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = new(0) }))(t)
	_, some = window()
	equal(t, "shown without a window", some, false)
}
