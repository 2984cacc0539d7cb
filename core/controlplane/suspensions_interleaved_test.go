package controlplane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// dispute is an account that is suspended and resumed while its owner, an operator and the service work on its databases.
type dispute struct {
	*world
	other     *fakeagent.Server // databases move between it and the first one
	dice      *rand.Rand
	all       []databases.Created
	suspended bool
	// shut are databases that were closed once the server had heard of the suspension, or that were not made yet: they stay closed
	// until it ends.
	shut map[id.DatabaseID]bool
	did  []string
}

func newDispute(t *testing.T, seed uint64) *dispute {
	d := &dispute{world: newWorld(t), dice: rand.New(rand.NewPCG(seed, 17)), shut: map[id.DatabaseID]bool{}}
	for _, feature := range []string{"clone", "delete", "deleted-recovery"} {
		ok(t, d.Operator.SetFeature(d.ctx, feature, true))
	}
	ok(t, d.Operator.SetAutoEnroll(d.ctx, d.account.ID, true))
	d.restorable(database.SingleLogin)
	d.all = append(d.all, d.latest, d.made("blog"))
	_, d.other = d.another("two", 0)
	for _, s := range d.servers() {
		s.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault {
			d.stayShut()
			return fakeagent.Fault{}
		})
	}
	return d
}

func (d *dispute) servers() []*fakeagent.Server { return []*fakeagent.Server{d.server, d.other} }

// either is one of the servers.
func (d *dispute) either() *fakeagent.Server { return d.servers()[d.dice.IntN(2)] }

// logsIn reports whether the owner gets into a database, at whichever server.
func (d *dispute) logsIn(c databases.Created) bool {
	return slices.ContainsFunc(d.servers(), func(s *fakeagent.Server) bool {
		return s.CanLogIn(customer, c.Record.Name, c.Username, c.Password)
	})
}

func (d *dispute) one() databases.Created { return d.all[d.dice.IntN(len(d.all))] }

// asks has the owner do something with a database, which is refused with the reason while the account is suspended.
func (d *dispute) asks(what string, do func() error) {
	d.t.Helper()
	d.did = append(d.did, what)
	err := do()
	if d.suspended {
		toldWhy(d.t, err)
	} else {
		ok(d.t, disputed(err))
	}
}

// disputed is an error of a request that nothing else explains than what goes on beside it.
func disputed(err error) error {
	for _, code := range []fault.Code{
		fault.DatabaseStateConflict, fault.DatabaseNotFound, fault.AgentError, fault.PlanLimit, fault.BackupNotVerified,
	} {
		if fault.Has(err, code) {
			return nil
		}
	}
	return err
}

// quarrels are what may happen next.
var quarrels = map[string]func(d *dispute){
	"suspend": func(d *dispute) { d.suspends(); d.suspended = true },
	"resume":  func(d *dispute) { d.resumes(); d.suspended, d.shut = false, map[id.DatabaseID]bool{} },
	"owner": func(d *dispute) {
		db := d.one().Record.ID
		reach := func(gates ...rollout.Gate) error {
			_, err := d.Access.Reach(d.ctx, d.caller, db, account.Own, gates...)
			return err
		}
		asks := map[string]func() error{
			"stop":   func() error { return d.ownerSets(db, database.Stop) },
			"start":  func() error { return d.ownerSets(db, database.Start) },
			"clone":  func() error { return d.clones(db) },
			"delete": func() error { return errOf(d.deletes(d.ControlPlane, db)) },
		}
		names := []string{"clone", "delete", "start", "stop"}
		what := names[d.dice.IntN(len(names))]
		if reach() == nil || d.suspended && !d.gone(db) {
			d.asks(what, asks[what])
		}
	},
	"recover": func(d *dispute) {
		if db := d.one().Record.ID; d.gone(db) {
			d.asks("recover", func() error { return errOf(d.recovers(d.ControlPlane, db)) })
		}
	},
	"operator": func(d *dispute) {
		db := d.one().Record.ID
		var err error
		switch d.dice.IntN(4) {
		case 0:
			_, _, err = d.Operator.SetLifecycle(d.ctx, db, database.Stop, grace)
		case 1:
			_, _, err = d.Operator.SetLifecycle(d.ctx, db, database.Start, grace)
		case 2:
			_, err = d.Operator.BackUp(d.ctx, db, grace)
		case 3:
			files := must(d.Operator.Backups(d.ctx, ports.BackupFilter{DatabaseID: db}, ports.Page{}))(d.t)
			if len(files) > 0 {
				_, err = d.Operator.Restore(d.ctx, db, files[0].Filename, restore.Consents{ConfirmShrink: true}, grace)
				if fault.Has(err, fault.ManagedRoleConflict) { // the spec's code where a managed database forbids it
					err = nil
				}
			}
		}
		ok(d.t, disputed(err))
	},
	"move": func(d *dispute) {
		r, some := d.record(d.one().Record.ID)
		if !some {
			return
		}
		q := moves.Request{DatabaseID: r.ID, Closed: d.dice.IntN(2) == 0, Forward: time.Duration(d.dice.IntN(2)) * time.Hour}
		for _, s := range must(d.Operator.Servers(d.ctx))(d.t) {
			if s.ID != r.ServerID {
				q.To = s.ID
			}
		}
		_, err := d.Operator.MoveDatabase(d.ctx, q, grace)
		if fault.Has(err, fault.ValidationError) { // as of one that cannot be followed
			err = nil
		}
		ok(d.t, disputed(err))
	},
	"work":    func(d *dispute) { must(d.Work.RunNext(d.ctx))(d.t) },
	"work on": func(d *dispute) { d.clock.Advance(time.Minute); must(d.Work.RunNext(d.ctx))(d.t) },
	"round":   func(d *dispute) { d.round() },
	"lose":    func(d *dispute) { d.either().LoseReplies(1) },
	"away":    func(d *dispute) { d.either().SetUnreachable(true) },
	"back":    func(d *dispute) { d.either().SetUnreachable(false) },
}

func (d *dispute) ownerSets(db id.DatabaseID, action database.Event) error {
	r, err := d.Access.Reach(d.ctx, d.caller, db, account.See)
	if err != nil {
		return err
	}
	return errOf(d.Databases.SetLifecycle(d.ctx, r, action))
}

func (d *dispute) clones(db id.DatabaseID) error {
	r, err := d.Access.Reach(d.ctx, d.caller, db, account.See, rollout.Clone)
	if err != nil {
		return err
	}
	made, err := d.Clones.Start(d.ctx, r, clone.Request{Name: fmt.Sprintf("copy-%d", len(d.all)), DisplayName: "A copy"})
	if err == nil {
		d.all = append(d.all, made.Clone)
	}
	return err
}

func (d *dispute) gone(db id.DatabaseID) bool {
	r, some := d.record(db)
	return some && r.Status.Gone()
}

// record is a database as it is stored, if it is.
func (d *dispute) record(db id.DatabaseID) (r database.Record, some bool) {
	d.t.Helper()
	ok(d.t, d.store.View(d.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		r, err = tx.Databases().Get(ctx, db)
		some = err == nil
		return nil
	}))
	return r, some
}

// round lets a batch host tell the server what it does not know, and look which databases are closed then.
func (d *dispute) round() {
	d.t.Helper()
	d.later(2 * time.Second)
	for _, c := range d.all {
		r, some := d.record(c.Record.ID)
		told := some && (r.Status == database.Creating || r.SettingsApplied == r.SettingsGeneration)
		if d.suspended && told && !d.logsIn(c) {
			d.shut[c.Record.ID] = true
		}
	}
	d.stayShut()
}

// stayShut demands that what was closed by a suspension is closed.
func (d *dispute) stayShut() {
	d.t.Helper()
	for _, c := range d.all {
		if d.suspended && d.shut[c.Record.ID] && d.logsIn(c) {
			d.t.Errorf("%s is open again while the account is suspended, after %v", c.Record.Name, d.did)
			delete(d.shut, c.Record.ID)
		}
	}
}

// settles has everything done that can be, and demands that whoever may get in does, and nobody else.
func (d *dispute) settles() {
	d.t.Helper()
	for _, s := range d.servers() {
		s.SetUnreachable(false)
		s.LoseReplies(0)
	}
	for range 60 {
		must(d.Work.RunNext(d.ctx))(d.t)
		d.round()
		d.clock.Advance(time.Minute)
	}
	for _, c := range d.all {
		r, some := d.record(c.Record.ID)
		want := some && r.Status == database.Active && !d.suspended
		if got := d.logsIn(c); got != want {
			d.t.Errorf("%s, which is %s, lets in: %t, want %t, after %v", c.Record.Name, r.Status, got, want, d.did)
		}
		if some && !r.Status.Gone() && r.SettingsApplied != r.SettingsGeneration {
			d.t.Errorf("the server of %s does not know its settings, after %v", c.Record.Name, d.did)
		}
	}
	open := must(d.Operator.FindOperations(d.ctx, ports.OperationFilter{
		Statuses: []operation.Status{operation.Queued, operation.Running},
	}, ports.Page{}))(d.t)
	for _, o := range open {
		if !d.suspended || o.Kind != "recover" {
			d.t.Errorf("a %s is still %s, after %v", o.Kind, o.Status, d.did)
		}
	}
}

// Whatever is done to databases while their account is suspended and resumed, they end as account and record say, and one that a
// suspension has closed is never open before its end, nor at the server that it moves to.
func TestSuspensionsInterleaved(t *testing.T) {
	names := make([]string, 0, len(quarrels))
	for name := range quarrels {
		names = append(names, name)
	}
	slices.Sort(names)
	seeds := uint64(200)
	if !sample.Whole() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := newDispute(t, seed)
			for range 40 {
				name := names[d.dice.IntN(len(names))]
				d.did = append(d.did, name)
				quarrels[name](d)
			}
			d.settles()
			d.did = append(d.did, "resume")
			quarrels["resume"](d)
			d.settles()
		})
	}
}
