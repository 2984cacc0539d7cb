package histories

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/ports"
)

// Who has waited longest is next: of the accounts with something due the one that was served longest ago, of its lanes the one
// that was, and of a lane what has been due longest. Of no account and on no server a process works on more than it may.

// A site of lanes: an operation of each account on each server, which goes on for ever, so that a lane never ends.
const (
	laneAccounts, laneServers = 3, 2
	lanes                     = laneAccounts * laneServers
	inLane                    = 2 // operations
)

// laneFact is a claim, or the end of one. Operations are numbered by their lanes.
type laneFact struct {
	is       string
	op       int
	process  int
	now, due int64 // of who claims; from when on it may be claimed again
	full     [lanes]bool
}

func (f laneFact) kind() string { return f.is }
func (laneFact) about() string  { return "the queue" }

const (
	served  = "claimed: it was its turn"
	passed  = "claimed, while another account had enough"
	putDown = "put down"
	idle    = "nothing to claim"
)

// The bounds of a process.
const perAccount, perServer = 1, 2

type laneState struct {
	turn  int
	turns [lanes]int // when a lane was last served
	due   [lanes * inLane]int64
	by    [lanes * inLane]int // the process that has it, from 1 on; 0: nobody
}

func laneRules(s laneState, f laneFact) []laneState {
	switch f.is {
	case served, passed:
		if s.next(f) != f.op || !s.may(f) {
			return nil
		}
		s.turn++
		s.turns[f.op/inLane], s.by[f.op] = s.turn, f.process
		return only(s, true)
	case putDown:
		holds := s.by[f.op] == f.process
		s.by[f.op], s.due[f.op] = 0, f.due
		return only(s, holds)
	case idle:
		return only(s, s.next(f) < 0)
	}
	return nil
}

// next is whose turn it is: -1 where nobody's.
func (s laneState) next(f laneFact) int {
	var waiting []int
	for op, due := range s.due {
		if s.by[op] == 0 && due <= f.now && !f.full[op/inLane] {
			waiting = append(waiting, op)
		}
	}
	if len(waiting) == 0 {
		return -1
	}
	account := func(op int) int {
		first := op / inLane / laneServers * laneServers
		return slices.Max(s.turns[first : first+laneServers])
	}
	return slices.MinFunc(waiting, func(a, b int) int {
		return cmp.Or(account(a)-account(b), s.turns[a/inLane]-s.turns[b/inLane], cmp.Compare(s.due[a], s.due[b]), a-b)
	})
}

// may reports whether the process has room for one more of the account, and on the server.
func (s laneState) may(f laneFact) bool {
	account, on := 0, 0
	for op, by := range s.by {
		if by != f.process {
			continue
		}
		if op/inLane/laneServers == f.op/inLane/laneServers {
			account++
		}
		if op/inLane%laneServers == f.op/inLane%laneServers {
			on++
		}
	}
	return account < perAccount && on < perServer
}

type laneHistory struct {
	*history[laneFact]
	*site
	began int64
	ops   map[id.OperationID]int
}

func (h laneHistory) since(at time.Time) int64 { return at.UnixMicro() - h.began }

// claim is one as a fact; what a process has enough of is not to be served.
func (h laneHistory) claim(is string, process int, c ports.OperationClaim) laneFact {
	f := laneFact{is: is, process: process, now: h.since(c.Now)}
	for lane := range f.full {
		f.full[lane] = slices.Contains(c.NotOf, h.accounts[lane/laneServers]) || slices.Contains(c.NotOn, h.servers[lane%laneServers])
	}
	return f
}

func (h laneHistory) sees(process int) ports.Store {
	return sight{h.store, func(update func(notes) error) (err error) {
		h.call(func() []laneFact {
			var done []laneFact
			err = update(notes{
				added: func(operation.Operation) {},
				taken: func(c ports.OperationClaim, o operation.Operation) {
					f := h.claim(served, process, c)
					if f.op = h.ops[o.ID]; slices.Contains(f.full[:], true) {
						f.is = passed
					}
					done = append(done, f)
				},
				none: func(c ports.OperationClaim) { done = append(done, h.claim(idle, process, c)) },
				saved: func(o operation.Operation) {
					if o.Until == nil {
						done = append(done, laneFact{is: putDown, op: h.ops[o.ID], process: process, due: h.since(o.NotBefore)})
					}
				},
				refused: func(operation.Operation, error) {},
			})
			if err != nil {
				return slices.DeleteFunc(done, func(f laneFact) bool { return f.is != idle })
			}
			return done
		})
		return err
	}}
}

// laneHistories have so many processes serve the lanes until so many claims were made.
func laneHistories(t *testing.T, seed uint64, s setting, processes int) *history[laneFact] {
	w := newSite(t, seed, s, laneAccounts, laneServers)
	clock := fakeclock.New()
	h := laneHistory{&history[laneFact]{}, w, clock.Now().UnixMicro(), map[id.OperationID]int{}}
	asker := w.engine("asker", w.store, clock, time.Hour, nil)
	for op := range lanes * inLane {
		h.ask(asker, op)
		clock.Advance(time.Millisecond)
	}
	stop := often(t, func() { clock.Advance(time.Millisecond) })
	defer stop()
	ctx, end := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	for process := 1; process <= processes; process++ {
		dice := diceOf(seed, process)
		var mu sync.Mutex
		e := w.engine("p"+string(rune('0'+process)), h.sees(process), clock, time.Hour, func(
			context.Context, *work.Job[work.None],
		) (work.Next, error) {
			mu.Lock()
			sleep, pause := aWhile(dice), aWhile(dice)
			mu.Unlock()
			time.Sleep(sleep)
			return work.Again(pause), nil
		})
		running.Go(func() {
			e.Run(ctx, new(ports.Sleepers), work.Workers{All: 3, PerAccount: perAccount, PerServer: perServer})
		})
	}
	const most = 60
	for end := time.Now().Add(patience); h.has(putDown) < most; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("seed %d: %d of %d claims were made", seed, h.has(putDown), most)
		}
	}
	end()
	running.Wait()
	return h.history
}

func aWhile(dice *rand.Rand) time.Duration { return time.Duration(1+dice.IntN(5)) * time.Millisecond }

// ask queues the operation of a number. Each is of a database of its own.
func (h laneHistory) ask(e *work.Engine, op int) {
	h.t.Helper()
	r := h.databases[op/inLane]
	if op%inLane > 0 {
		r.ID, r.Name = newID[id.DatabaseID](h.site), r.Name+"x"
		ok(h.t, h.store.Update(h.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Add(ctx, r) }))
	}
	see := sight{h.store, func(update func(notes) error) error {
		return update(notes{added: func(o operation.Operation) { h.ops[o.ID] = op }})
	}}
	ok(h.t, h.asks(e, see, r))
}

var laneTrial = trial[laneState, laneFact]{
	rules: laneRules,
	make:  func(t *testing.T, seed uint64, s setting) *history[laneFact] { return laneHistories(t, seed, s, 2) },
	kinds: []string{served, passed, putDown, idle},
}

func TestLanesAreServedInTurn(t *testing.T) { laneTrial.holds(t) }

// On PostgreSQL one process serves them: claims that meet each other take lanes that nobody holds.
func TestLanesAreServedInTurnOnPostgreSQL(t *testing.T) {
	alone := laneTrial
	alone.make = func(t *testing.T, seed uint64, s setting) *history[laneFact] { return laneHistories(t, seed, s, 1) }
	alone.holdsIn(t, 1, onPostgres(t))
}

func TestBugsOfLanesAreFound(t *testing.T) {
	laneTrial.finds(t, map[string]func(parts) parts{
		"one account is served first": func(p parts) parts {
			p.store = alteredQueue{p.store, queueBug{greedy: true}}
			return p
		},
		"claims do not hear who has enough": func(p parts) parts {
			p.store = alteredQueue{p.store, queueBug{unlimited: true}}
			return p
		},
	})
}
