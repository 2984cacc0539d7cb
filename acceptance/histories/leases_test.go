package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/ports"
)

// Of a database one operation is open at a time, and of that one worker is effective: who has slept past the end of its lease, or
// whose clock is wrong, neither writes nor is heard by an agent that has heard of a newer lease.

// digFact is what became of an operation under the lease of an epoch.
type digFact struct {
	is       string
	database string
	op       int
	epoch    int64
	now      int64 // of who claims, in microseconds
	until    int64 // of the lease, then; 0: none
	final    bool
}

func (f digFact) kind() string  { return f.is }
func (f digFact) about() string { return f.database }

const (
	queued    = "queued"
	notQueued = "not queued: another one is open"
	claimed   = "claimed"
	claimedOf = "claimed after somebody's lease has ended"
	saved     = "saved"
	ended     = "ended"
	lost      = "lease lost"
	carried   = "carried out by the agent"
	fenced    = "refused by the agent"
)

// digState is that of a database.
type digState struct {
	op           int // the last one; 0: none yet
	open         bool
	epoch, until int64
	heard        int64 // the newest epoch that the agent knows
}

func digRules(s digState, f digFact) []digState {
	switch f.is {
	case queued:
		return only(digState{op: f.op, open: true}, !s.open)
	case notQueued:
		return only(s, s.open)
	case claimed, claimedOf:
		holds := s.open && f.op == s.op && f.epoch == s.epoch+1 && f.now >= s.until
		s.epoch, s.until = f.epoch, f.until
		return only(s, holds)
	case saved, ended:
		holds := s.open && f.op == s.op && f.epoch == s.epoch
		s.open, s.until = !f.final, f.until
		return only(s, holds)
	case lost:
		return only(s, f.op != s.op || !s.open || f.epoch < s.epoch)
	case carried:
		holds := f.op != s.op || f.epoch >= s.heard
		if f.op == s.op {
			s.heard = f.epoch
		}
		return only(s, holds)
	case fenced:
		return only(s, f.op != s.op || f.epoch < s.heard)
	}
	return nil
}

// mine is an operation's lease, as a fact.
func (h digHistory) mine(is string, o operation.Operation) digFact {
	f := digFact{is: is, database: string(o.DatabaseID), op: h.number(string(o.ID)), epoch: o.Epoch, final: o.Status.Final()}
	if o.Until != nil && !f.final {
		f.until = o.Until.UnixMicro()
	}
	return f
}

type digHistory struct{ *history[digFact] }

// sees is the store as one process sees it.
func (h digHistory) sees(store ports.Store) ports.Store {
	return sight{store, func(update func(notes) error) (err error) {
		h.call(func() []digFact {
			var done, refused []digFact
			err = update(notes{
				added: func(o operation.Operation) { done = append(done, h.mine(queued, o)) },
				taken: func(c ports.OperationClaim, o operation.Operation) {
					f := h.mine(claimed, o)
					if f.now = c.Now.UnixMicro(); o.Attempts > 1 { // nobody has put it down
						f.is = claimedOf
					}
					done = append(done, f)
				},
				none: func(ports.OperationClaim) {},
				saved: func(o operation.Operation) {
					is := saved
					if o.Status.Final() {
						is = ended
					}
					done = append(done, h.mine(is, o))
				},
				refused: func(o operation.Operation, err error) {
					switch {
					case errors.Is(err, ports.ErrLeaseLost):
						refused = append(refused, h.mine(lost, o))
					case fault.Has(err, fault.DatabaseStateConflict):
						refused = append(refused, h.mine(notQueued, o))
					}
				},
			})
			if err != nil {
				return refused
			}
			return done
		})
		return err
	}}
}

// earAgent is an agent that hears of leases.
type earAgent struct {
	digHistory
	deaf bool // it takes every epoch for the newest

	mu    sync.Mutex
	heard map[id.OperationID]int64
}

func (a *earAgent) dig(o operation.Operation, f ports.Fence) (err error) {
	a.call(func() []digFact {
		a.mu.Lock()
		defer a.mu.Unlock()
		is := carried
		if f.Epoch < a.heard[f.OperationID] && !a.deaf {
			is, err = fenced, command.Refuse(command.ReasonFenced, "a worker with a newer lease has taken over")
		} else {
			a.heard[f.OperationID] = f.Epoch
		}
		return []digFact{a.mine(is, operation.Operation{ID: o.ID, DatabaseID: o.DatabaseID, Lease: operation.Lease{Epoch: f.Epoch}})}
	})
	return err
}

const (
	workers    = 3
	leaseHold  = 60 * time.Millisecond
	operations = 12 // in all
)

// digHistories have workers whose clocks go apart, and who sleep longer than they have a lease.
func digHistories(t *testing.T, seed uint64, s setting, deaf bool) *history[digFact] {
	w := newSite(t, seed, s, 1, 2)
	h := digHistory{&history[digFact]{}}
	agent := &earAgent{digHistory: h, deaf: deaf, heard: map[id.OperationID]int64{}}
	clocks := make([]*fakeclock.Clock, workers)
	for i := range clocks {
		clocks[i] = fakeclock.New()
	}
	dice := diceOf(seed, 100)
	stop := often(t, func() {
		for _, c := range clocks {
			c.Advance(time.Millisecond)
		}
		if dice.IntN(40) == 0 {
			pick(dice, clocks).Jump(time.Duration(dice.IntN(5)-1) * leaseHold)
		}
	})
	defer stop()
	ctx, end := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	for i, clock := range clocks {
		dice := diceOf(seed, i)
		e := w.engine(fmt.Sprint("p", i), h.sees(w.store), clock, leaseHold, func(
			ctx context.Context, j *work.Job[work.None],
		) (work.Next, error) {
			return digs(ctx, dice, agent, j)
		})
		running.Go(func() {
			for ctx.Err() == nil {
				if !must(e.RunNext(w.ctx))(t) {
					time.Sleep(200 * time.Microsecond)
				}
			}
		})
	}
	asker, ask := w.engine("asker", w.store, clocks[0], leaseHold, nil), diceOf(seed, 101)
	for end := time.Now().Add(patience); h.has(queued) < operations; {
		if time.Now().After(end) {
			t.Fatalf("seed %d: work does not come to its end", seed)
		}
		if err := w.asks(asker, h.sees(w.store), pick(ask, w.databases)); err != nil && !fault.Has(err, fault.DatabaseStateConflict) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	end()
	running.Wait()
	return h.history
}

// digs is a step, which takes longer than the lease now and then.
func digs(ctx context.Context, dice *rand.Rand, agent *earAgent, j *work.Job[work.None]) (work.Next, error) {
	o := j.Operation()
	dig := func() error {
		return j.Call(ctx, "dig", func(_ context.Context, f ports.Fence) error {
			if dice.IntN(3) == 0 {
				time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond) // on its way to the agent
			}
			return agent.dig(o, f)
		})
	}
	if err := dig(); err != nil {
		return work.Next{}, err
	}
	time.Sleep(time.Duration(dice.IntN(10)) * time.Millisecond)
	switch dice.IntN(4) {
	case 0:
		return work.Again(time.Duration(1+dice.IntN(5)) * time.Millisecond), nil
	case 1:
		return work.Again(0), nil
	case 2:
		if err := j.Save(ctx, "dug", nil, nil); err != nil {
			return work.Next{}, err
		}
		if err := dig(); err != nil {
			return work.Next{}, err
		}
	}
	return j.Finish(ctx, work.Ending{On: operation.Succeed})
}

var digTrial = trial[digState, digFact]{
	rules: digRules,
	make:  func(t *testing.T, seed uint64, s setting) *history[digFact] { return digHistories(t, seed, s, false) },
	kinds: []string{queued, notQueued, claimed, claimedOf, saved, ended, lost, carried, fenced},
}

func TestOneWorkerIsEffective(t *testing.T) { digTrial.holds(t) }

func TestOneWorkerIsEffectiveOnPostgreSQL(t *testing.T) { digTrial.holdsIn(t, 1, onPostgres(t)) }

func TestBugsOfLeasesAreFound(t *testing.T) {
	digTrial.finds(t, map[string]func(parts) parts{
		"a save does not ask for the epoch": func(p parts) parts {
			p.store = alteredQueue{p.store, queueBug{anyEpoch: true}}
			return p
		},
		"a claim takes what is leased": func(p parts) parts {
			p.store = alteredQueue{p.store, queueBug{early: leaseHold}}
			return p
		},
	})
	deaf := digTrial
	deaf.make = func(t *testing.T, seed uint64, s setting) *history[digFact] { return digHistories(t, seed, s, true) }
	deaf.finds(t, map[string]func(parts) parts{"an agent forgets what it has heard": nil})
}
