// Package histories holds small tests of what many do at once: whatever calls overlap, there is an order of them that explains
// every answer. Each file has one promise: its rules, which are a sequential specification, and who makes the history. Porcupine
// looks for the order.
package histories

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pgherd/pgherd/acceptance/sample"
)

// fact is something that was true, or took effect, at one moment between the beginning and the end of a call.
type fact interface {
	kind() string  // what it is, for the coverage
	about() string // of what; facts of different subjects are judged apart
}

// history is what was seen. It is safe for concurrent use.
type history[F fact] struct {
	moment atomic.Int64

	mu         sync.Mutex
	operations []porcupine.Operation
	numbers    map[string]int
}

// call records what is learnt from one call, which may be nothing.
func (h *history[F]) call(do func() []F) {
	begun := h.moment.Add(1)
	facts := do()
	ended := h.moment.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range facts {
		h.operations = append(h.operations, porcupine.Operation{Input: f, Call: begun, Return: ended})
	}
}

// number gives each text a number, from 1 on.
func (h *history[F]) number(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.numbers == nil {
		h.numbers = map[string]int{}
	}
	if h.numbers[text] == 0 {
		h.numbers[text] = len(h.numbers) + 1
	}
	return h.numbers[text]
}

// has counts the facts of a kind.
func (h *history[F]) has(kind string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.operations {
		if o.Input.(F).kind() == kind {
			n++
		}
	}
	return n
}

// String is the history in the order of the calls.
func (h *history[F]) String() string {
	var b strings.Builder
	for _, o := range slices.SortedFunc(slices.Values(h.operations), byCall) {
		fmt.Fprintf(&b, "%4d-%-4d %s: %s %+v\n", o.Call, o.Return, o.Input.(F).about(), o.Input.(F).kind(), o.Input)
	}
	return b.String()
}

func byCall(a, b porcupine.Operation) int { return int(a.Call - b.Call) }

// rules say in which states a fact may leave what is in a state; none where it cannot be true.
type rules[S comparable, F fact] func(S, F) []S

// only is the state where something holds, and none where not.
func only[S any](s S, holds bool) []S {
	if holds {
		return []S{s}
	}
	return nil
}

// patience bounds one check, which takes milliseconds: an exhausted one is no verdict.
const patience = time.Minute

var hashSeed = maphash.MakeSeed()

// judge says whether an order of the facts explains them. Every subject begins with the zero state.
func (r rules[S, F]) judge(h *history[F]) porcupine.CheckResult {
	model := porcupine.NondeterministicModel{
		Init: func() []any { var begin S; return []any{begin} },
		Step: func(from, input, _ any) (next []any) {
			for _, s := range r(from.(S), input.(F)) {
				next = append(next, s)
			}
			return next
		},
		Partition: func(all []porcupine.Operation) (apart [][]porcupine.Operation) {
			of := map[string][]porcupine.Operation{}
			for _, o := range all {
				of[o.Input.(F).about()] = append(of[o.Input.(F).about()], o)
			}
			for _, some := range of {
				apart = append(apart, some)
			}
			return apart
		},
		Hash: func(s any) uint64 { return maphash.Comparable(hashSeed, s.(S)) },
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), h.operations, patience)
}

// trial is a promise, and how histories are made that it has to hold in.
type trial[S comparable, F fact] struct {
	rules rules[S, F]
	make  func(t *testing.T, seed uint64, s setting) *history[F]
	// kinds are those of facts of which some history has to hold one: otherwise nothing was tried.
	kinds []string
}

const (
	seeds     = 40
	mostSeeds = 400 // where a kind was not met before
	fewSeeds  = 5   // in a sample, which has other ones each time
)

// holds has the promise hold in many histories.
func (c trial[S, F]) holds(t *testing.T) {
	if !sample.Whole() {
		first := 1 + sample.Number(t)*fewSeeds
		for seed := first; seed < first+fewSeeds; seed++ {
			c.holdsIn(t, seed, setting{})
		}
		return
	}
	met := map[string]int{}
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(c.kinds), func(kind string) bool { return met[kind] > 0 })
	}
	for seed := uint64(1); seed <= seeds || seed <= mostSeeds && len(missing()) > 0; seed++ {
		for _, o := range c.holdsIn(t, seed, setting{}).operations {
			met[o.Input.(F).kind()]++
		}
	}
	t.Logf("the histories held %v", met)
	if never := missing(); len(never) > 0 {
		t.Errorf("no history held any of %q", never)
	}
}

func (c trial[S, F]) holdsIn(t *testing.T, seed uint64, s setting) *history[F] {
	t.Helper()
	h := c.make(t, seed, s)
	if verdict := c.rules.judge(h); verdict != porcupine.Ok {
		t.Fatalf("seed %d: %s\n%s", seed, verdict, h)
	}
	return h
}

// found bounds in how many histories a planted bug has to show.
const found = 100

// finds has each bug break the promise in some history. Without this, rules that admit everything say nothing.
func (c trial[S, F]) finds(t *testing.T, bugs map[string]func(parts) parts) {
	for name, plant := range bugs {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= found; seed++ {
				if c.rules.judge(c.make(t, seed, setting{plant: plant})) == porcupine.Illegal {
					t.Logf("found with seed %d", seed)
					return
				}
			}
			t.Fatalf("%d histories do not show it", found)
		})
	}
}
