package controlplane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// stepper lets one goroutine at a time go on to its next step, which the dice choose: a transaction or a call of the agent.
type stepper struct {
	dice *rand.Rand

	mu      sync.Mutex
	free    bool // nobody waits
	waiting []chan struct{}
}

// turn waits for the next step.
func (s *stepper) turn() {
	s.mu.Lock()
	if s.free {
		s.mu.Unlock()
		return
	}
	c := make(chan struct{})
	s.waiting = append(s.waiting, c)
	s.mu.Unlock()
	<-c
}

// play lets the goroutines do step after step, and looks at what there is after each, until all have ended.
func (s *stepper) play(look func(), goroutines ...func()) {
	var all sync.WaitGroup
	defer all.Wait()
	defer s.release()
	for _, g := range goroutines {
		all.Go(g)
		synctest.Wait() // so that they come in one order
	}
	for synctest.Wait(); len(s.waiting) > 0; synctest.Wait() {
		s.free = true
		look()
		s.free = false
		i := s.dice.IntN(len(s.waiting))
		next := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		close(next)
	}
}

// release has nobody wait any more.
func (s *stepper) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	for _, c := range s.waiting {
		close(c)
	}
	s.waiting = nil
}

// steppedStore has a step before each transaction that may write, so that others come between what it was decided by and itself.
type steppedStore struct {
	*memstore.Store
	*stepper
}

// Update implements ports.Store.
func (s steppedStore) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	s.turn()
	return s.Store.Update(ctx, fn)
}

// burial is a deleted database whose time of recovery is about to end.
type burial struct {
	*world
	*stepper
	db    id.DatabaseID
	lost  int           // replies that may get lost
	story []audit.Entry // the log, in the order of the transactions
	seen  int           // so much of it is in order
	end   time.Time     // of the time of recovery
}

func newBurial(t *testing.T, seed uint64) *burial {
	b := &burial{world: newWorld(t), stepper: &stepper{dice: rand.New(rand.NewPCG(seed, 11)), free: true}, lost: 2}
	b.ports.Clock = ticking{b.clock}
	b.ports.Store = steppedStore{b.store, b.stepper}
	b.ControlPlane = b.process(quick())
	b.deletable()
	b.db = b.source()
	b.deleted(b.db)
	b.hears()
	b.clock.Advance(b.end.Sub(b.clock.Now()) - time.Minute)
	b.server.OnCall(func(context.Context, fakeagent.Call) (f fakeagent.Fault) {
		b.stepper.turn()
		if b.lost > 0 && b.dice.IntN(4) == 0 {
			b.lost--
			f.After = fakeagent.ErrReplyLost
		}
		return f
	})
	b.free = false
	return b
}

// parties are what goes on beside one another, each on a host of its own.
var parties = map[string]func(b *burial, cp *controlplane.ControlPlane) error{
	"recover": func(b *burial, cp *controlplane.ControlPlane) error {
		err := errOf(b.recovers(cp, b.db))
		if at, _ := b.stands(); fault.Has(err, fault.DatabaseStateConflict) && (at == "recovering" || at == "live") {
			return fmt.Errorf("asked again while the database is %s: %w", at, err)
		}
		return foreseen(err)
	},
	"delete": func(b *burial, cp *controlplane.ControlPlane) error { return foreseen(errOf(b.deletes(cp, b.db))) },
	"round":  func(b *burial, cp *controlplane.ControlPlane) error { return cp.Rounds.Once(b.ctx) },
	"work":   func(b *burial, cp *controlplane.ControlPlane) error { return errOf(cp.Work.RunNext(b.ctx)) },
	"cancel": func(b *burial, cp *controlplane.ControlPlane) error {
		list, err := cp.Operator.Operations(b.ctx, b.db, ports.Page{})
		for _, o := range list {
			if !o.Status.Final() && o.Kind != rule.KindPurge {
				_, err = cp.Operator.CancelOperation(b.ctx, o.ID)
			}
		}
		return foreseen(err)
	},
	// The time goes to just before the end, to the end, or on to where what has failed is tried again.
	"time": func(b *burial, _ *controlplane.ControlPlane) error {
		if left := b.end.Sub(b.clock.Now()); left > time.Second {
			b.clock.Advance(left - time.Second)
		} else {
			b.clock.Advance(max(left, time.Minute))
		}
		return nil
	},
}

// hears reads on in the log: what one step has written, in its order. It is no step itself.
func (b *burial) hears() {
	list, err := ports.Read(b.ctx, b.store, func(ctx context.Context, tx ports.Tx) ([]audit.Entry, error) {
		return tx.Audit().List(ctx, b.db, ports.Page{})
	})
	ok(b.t, err)
	list = slices.DeleteFunc(list, func(e audit.Entry) bool {
		return slices.ContainsFunc(b.story, func(known audit.Entry) bool { return known.ID == e.ID })
	})
	slices.SortFunc(list, func(x, y audit.Entry) int { return x.At.Compare(y.At) })
	b.story = append(b.story, list...)
	if slices.ContainsFunc(list, func(e audit.Entry) bool { return e.Action == audit.DatabaseDeleted }) {
		scene, err := ports.Read(b.ctx, b.store, func(ctx context.Context, tx ports.Tx) (rule.Scene, error) {
			return tx.Deletions().Get(ctx, b.db)
		})
		ok(b.t, err)
		b.end = scene.Tombstone.PurgeAfter
	}
}

// skewed is a clock that goes a little wrong.
type skewed struct {
	ports.Clock
	by time.Duration
}

// Now implements ports.Clock.
func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.by) }

// host is one more process, whose clock is up to two seconds from the others'.
func (b *burial) host() *controlplane.ControlPlane {
	p := b.ports
	p.Clock = skewed{b.ports.Clock, time.Duration(b.dice.IntN(5)-2) * time.Second}
	return must(controlplane.New(p, quick()))(b.t)
}

// afterlife is what may follow what in the life of a database, as its log tells it.
var afterlife = map[string]map[audit.Action]string{
	"live":       {audit.DeleteRequested: "deleting"},
	"deleting":   {audit.DatabaseDeleted: "deleted", audit.DeleteFailed: "live", audit.OperationCanceled: "live"},
	"deleted":    {audit.RecoverRequested: "recovering", audit.PurgeBegun: "purging"},
	"recovering": {audit.DatabaseRecovered: "live", audit.RecoverFailed: "deleted", audit.OperationCanceled: "deleted"},
	"purging":    {audit.DatabasePurged: "purged"},
}

// stands says what the log makes of the database; amiss is what the model has no place for.
func (b *burial) stands() (at string, amiss error) {
	b.hears()
	at = "live"
	var told []audit.Action
	for _, e := range b.story {
		told = append(told, e.Action)
		if next, known := afterlife[at][e.Action]; known {
			at = next
		} else if !slices.Contains([]audit.Action{audit.DatabaseCreated, audit.Enrolled, audit.CancelOrder}, e.Action) {
			return at, fmt.Errorf("%s while the database is %s: %v", e.Action, at, told)
		}
	}
	return at, nil
}

// wantAfterlife holds what the log says to the model, and the server to that: no purge begins early or beside a recovery, nothing
// is purged of what lives, and what is purged never comes back.
func (b *burial) wantAfterlife() (at string) {
	b.t.Helper()
	at, amiss := b.stands()
	if amiss != nil {
		b.t.Fatal(amiss)
	}
	there, files := len(b.server.Databases()), b.server.Files()
	if at != "purging" && at != "purged" && (there != 1 || at == "deleted" && files == 0) {
		b.t.Fatalf("the server has %d databases and %d files while the database is %s", there, files, at)
	}
	if b.seen == len(b.story) { // a log-in takes time
		return at
	}
	for _, e := range b.story[b.seen:] {
		b.wantTimely(e)
	}
	b.seen = len(b.story)
	if in := b.logsIn(b.latest); in && (at == "deleted" || at == "purging" || at == "purged") || !in && at == "live" {
		b.t.Fatalf("log-ins: %t while the database is %s", in, at)
	}
	return at
}

// wantTimely holds what was done last to the time of recovery, by the clock of whoever did it.
func (b *burial) wantTimely(e audit.Entry) {
	b.t.Helper()
	const readings = time.Millisecond // of the clock, in one transaction
	early := e.Action == audit.PurgeBegun && e.At.Before(b.end)
	late := e.Action == audit.RecoverRequested && e.At.After(b.end.Add(readings))
	if early || late {
		b.t.Fatalf("%s at %s; the time of recovery ends at %s", e.Action, e.At, b.end)
	}
}

// Requests for a recovery come beside the round that begins the purge, workers of both, cancelations and another deletion; they
// take turns with each transaction and each call of the agent, some of whose replies get lost.
func TestRecoverAgainstPurgeStepBesideStep(t *testing.T) {
	seeds := 200
	if !sample.Whole() {
		seeds = 60
	}
	ends := map[string]int{}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBurial(t, uint64(seed))
				b.beside()
				ends[b.rests()]++
			})
		})
	}
	t.Logf("it ended %v", ends)
	if ends["live"] == 0 || ends["purged"] == 0 {
		t.Errorf("only one of them ever wins: %v", ends)
	}
}

func (b *burial) beside() {
	names := []string{"recover", "recover", "round", "round", "work", "work", "time", "delete", "cancel"}
	var all []func()
	for _, name := range names {
		cp, times := b.host(), 1+b.dice.IntN(3)
		if name == "work" {
			times *= 4
		}
		all = append(all, func() {
			for range times {
				b.turn()
				if err := parties[name](b, cp); err != nil {
					b.t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	b.play(func() { b.wantAfterlife() }, all...)
}

// foreseen drops the refusals that are answers to what comes too late, or beside something else.
func foreseen(err error) error {
	if fault.Has(err, fault.DatabaseStateConflict) || fault.Has(err, fault.DatabaseNotFound) {
		return nil
	}
	return err
}

// rests has everything come to its end, and returns how. What is deleted then is purged after its time.
func (b *burial) rests() string {
	b.t.Helper()
	b.server.OnCall(nil)
	settle := func() string {
		for range 3 {
			ok(b.t, b.Rounds.Once(b.ctx))
			b.work(b.ControlPlane)
		}
		return b.wantAfterlife()
	}
	at := settle()
	if at == "deleted" {
		b.clock.Advance(rule.DefaultWindow)
		at = settle()
	}
	switch at {
	case "live":
		equal(b.t, "its table", b.server.HasTable("shop", "kept"), true)
		equal(b.t, "isolated", b.isolated(), 0)
	case "purged":
		equal(b.t, "on the server", len(b.server.Databases()), 0)
		equal(b.t, "files", b.server.Files(), 0)
	default:
		b.t.Errorf("it stays %s", at)
	}
	b.wantFindings()
	if list, err := b.Operator.Operations(b.ctx, b.db, ports.Page{}); err == nil {
		equal(b.t, "open", slices.ContainsFunc(list, func(o operation.Operation) bool { return !o.Status.Final() }), false)
	}
	return at
}
