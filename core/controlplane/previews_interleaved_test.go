package controlplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/ports"
)

// ticking is a clock of which no two readings are the same: what is logged in a transaction has the order of the transactions.
type ticking struct{ *fakeclock.Clock }

func (c ticking) Now() time.Time {
	c.Advance(time.Microsecond)
	return c.Clock.Now()
}

// race is the previews of one ref, to which much happens at the same time.
type race struct {
	*world
	ci access.Caller

	mu   sync.Mutex
	made []id.DatabaseID
}

func newRace(t *testing.T) *race {
	r := &race{world: newWorld(t)}
	r.ports.Clock = ticking{r.clock}
	r.ControlPlane = r.process(quick())
	r.ci = r.pipeline(r.account, "web")
	for _, feature := range rollout.Features() {
		ok(t, r.Operator.SetFeature(r.ctx, feature, true))
	}
	ok(t, r.Operator.SetAutoEnroll(r.ctx, r.account.ID, true))
	ok(t, r.open())
	return r
}

// some is one of the previews, most often the last.
func (r *race) some(n int) id.DatabaseID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 6 {
		return r.made[len(r.made)-1]
	}
	return r.made[n%len(r.made)]
}

func (r *race) open() error {
	o, err := r.Previews.Open(r.ctx, r.ci, ofRef("main"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && !slices.Contains(r.made, o.Preview.DatabaseID) {
		r.made = append(r.made, o.Preview.DatabaseID)
	}
	return err
}

// actions are what may happen; n is any number.
var actions = map[string]func(r *race, n int) error{
	"open": func(r *race, _ int) error { return r.open() },
	"extend": func(r *race, n int) error {
		reached, err := r.Previews.Reach(r.ctx, r.ci, r.some(n))
		if err == nil {
			_, err = r.Previews.Extend(r.ctx, reached, 1+n)
		}
		return err
	},
	"delete": func(r *race, n int) error {
		reached, err := r.Previews.Reach(r.ctx, r.ci, r.some(n))
		if err == nil {
			_, err = r.Previews.Delete(r.ctx, reached)
		}
		return err
	},
	"recover": func(r *race, n int) error {
		reached, err := r.Deletion.Reach(r.ctx, r.caller, r.some(n), account.Own)
		if err == nil {
			_, err = r.Deletion.Recover(r.ctx, reached)
		}
		return err
	},
	"cancel": func(r *race, n int) error {
		list, err := r.Operator.Operations(r.ctx, r.some(n), ports.Page{})
		for _, o := range list {
			if !o.Status.Final() {
				_, err = r.Operator.CancelOperation(r.ctx, o.ID)
			}
		}
		return err
	},
	"round": func(r *race, _ int) error { return r.Rounds.Once(r.ctx) },
	"work": func(r *race, n int) error {
		for range n {
			if more, err := r.Work.RunNext(r.ctx); err != nil || !more {
				return err
			}
		}
		return nil
	},
	"hours":   func(r *race, n int) error { r.clock.Advance(time.Duration(n) * 3 * time.Hour); return nil },
	"seconds": func(r *race, n int) error { r.clock.Advance(time.Duration(n) * 5 * time.Second); return nil },
	"lose":    func(r *race, _ int) error { r.server.LoseReplies(1); return nil },
}

// expected are the refusals that are answers. A recovery may come too late.
func expected(err error) bool {
	// A round destroys nothing where time jumps between its question and the answer.
	return err == nil || strings.Contains(err.Error(), "could not be compared with the metadata") || slices.Contains([]fault.Code{
		fault.PreviewConflict, fault.PreviewLeaseEnded, fault.PreviewNotFound, fault.DatabaseStateConflict, fault.DatabaseNotFound,
		fault.AgentError, fault.PlanLimit,
	}, fault.CodeOf(err))
}

// wantModel holds what the activity logs say to a model: what may follow what in the life of one preview. No lease is renewed
// that has ended, none lives twice, nothing is deleted twice, and while nobody knows what has become of a deletion, there is no
// other one.
func (r *race) wantModel() {
	r.t.Helper()
	live := 0
	for _, db := range r.made {
		p, err := r.Previews.Reach(r.ctx, r.ci, db)
		if fault.Has(err, fault.PreviewNotFound) {
			continue // purged
		}
		ok(r.t, err)
		if p.Preview().Lease != preview.Deleted {
			live++
		}
		at, generation := "active", int64(1)
		var story []string
		log := r.log(db)
		slices.SortFunc(log, func(a, b audit.Entry) int { return a.At.Compare(b.At) })
		for _, e := range log {
			story = append(story, string(e.Action))
			next, known := lives[at][e.Action]
			switch {
			case known:
				at = next
			case slices.Contains(tellsNothing, e.Action):
			default:
				r.t.Fatalf("%s while the preview is %s: %v", e.Action, at, story)
			}
			if e.Action == audit.PreviewExtended || e.Action == audit.DatabaseRecovered {
				generation++
			}
		}
		lease := p.Preview().Lease
		if at == "active" && lease == preview.Expired { // its time is over, which is no line of the log
			at = "expired"
		}
		if string(lease) != at || p.Preview().Generation != generation {
			r.t.Fatalf("the lease is %s, generation %d; the log says %s, %d: %v", lease, p.Preview().Generation, at, generation, story)
		}
	}
	if live > 1 {
		r.t.Fatalf("%d previews of one ref are alive", live)
	}
}

// lives are the lives of previews, as their logs tell them.
var lives = map[string]map[audit.Action]string{
	"active":   {audit.PreviewExtended: "active", audit.DeleteRequested: "deleting", audit.PreviewReleased: "expired"},
	"expired":  {audit.DeleteRequested: "deleting", audit.PreviewReleased: "expired"},
	"deleting": {audit.DatabaseDeleted: "deleted", audit.DeleteFailed: "expired", audit.OperationCanceled: "expired"},
	"deleted":  {audit.RecoverRequested: "recovering"},
	"recovering": {
		audit.DatabaseRecovered: "active", audit.RecoverFailed: "deleted", audit.OperationCanceled: "deleted",
	},
}

// tellsNothing are the lines that are about the database alone, or beside another one.
var tellsNothing = []audit.Action{audit.DatabaseCreated, audit.PreviewExpired, audit.CancelOrder}

// rest has everything come to its end: what is asked for is done, a recovery too, which begins another lease; and what has
// expired after that is deleted.
func (r *race) rest() {
	r.t.Helper()
	r.server.LoseReplies(0)
	for _, pause := range []time.Duration{0, 4 * 24 * time.Hour} {
		r.clock.Advance(pause)
		for range 6 {
			ok(r.t, r.Rounds.Once(r.ctx))
			r.runAll()
			r.clock.Advance(time.Minute)
		}
	}
	for _, db := range r.made {
		p, err := r.Previews.Reach(r.ctx, r.ci, db)
		if err == nil && p.Preview().Lease != preview.Deleted {
			r.t.Fatalf("in the end a preview is %s", p.Preview().Lease)
		}
	}
}

// Whatever happens to the previews of a ref, in whatever order and at the same time, agrees with the model.
func TestPreviewsInterleaved(t *testing.T) {
	seeds := 200
	if !sample.Whole() {
		seeds = 15
	}
	for what, of := range map[string][]string{
		"extend against expiry":       {"extend", "extend", "hours", "hours", "round", "work"},
		"delete against extend":       {"delete", "extend", "extend", "work", "lose", "seconds", "cancel", "round"},
		"create against delete":       {"open", "open", "delete", "work", "lose", "seconds"},
		"recover against create":      {"recover", "open", "delete", "work", "lose", "seconds", "cancel"},
		"everything at the same time": {"open", "extend", "delete", "recover", "cancel", "round", "work", "hours", "seconds", "lose"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) { interleave(t, uint64(seed), of) }) {
					return
				}
			}
		})
	}
}

func interleave(t *testing.T, seed uint64, of []string) {
	r, dice := newRace(t), rand.New(rand.NewPCG(seed, 7))
	for range 10 {
		var at []string
		var together sync.WaitGroup
		for range 1 + dice.IntN(3) {
			name, n := of[dice.IntN(len(of))], dice.IntN(12)
			at = append(at, name)
			together.Go(func() {
				if err := actions[name](r, n); !expected(err) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		together.Wait()
		if r.wantModel(); t.Failed() {
			t.Fatalf("after %v", at)
		}
	}
	r.rest()
	r.wantModel()
}
