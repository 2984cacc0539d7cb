// Package machinetest holds the checks that every state machine must pass.
package machinetest

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// T is the part of *testing.T that the checks need.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Complete checks that the table has exactly one cell for each state and event, that each refusal has a known code and no next
// state, and that every other cell leads to one of the states.
func Complete[S, E ~string](t T, table machine.Table[S, E], states []S, events []E) {
	t.Helper()
	var holes []string
	for _, s := range states {
		for _, e := range events {
			if _, ok := table[s][e]; !ok {
				holes = append(holes, string(s)+"/"+string(e))
			}
		}
	}
	if len(holes) > 0 {
		t.Errorf("missing cells: %v", holes)
	}
	if len(table) != len(states) {
		t.Errorf("%d rows for %d states", len(table), len(states))
	}
	for s, row := range table {
		if len(row) != len(events) {
			t.Errorf("%s: %d cells for %d events", s, len(row), len(events))
		}
		for e, cell := range row {
			switch {
			case cell.Code != "" && (!cell.Code.Known() || cell.Next != "" || len(cell.Effects) > 0):
				t.Errorf("%s/%s is refused with %+v", s, e, cell)
			case cell.Code == "" && table[cell.Next] == nil:
				t.Errorf("%s/%s leads to %q", s, e, cell.Next)
			}
		}
	}
}

// Moves checks that exactly the given moves are possible, each to the given state, and that everything else is refused with the
// code. The calling test thus states every transition a second time, independently of the table.
func Moves[S, E ~string](
	t T, table machine.Table[S, E], states []S, events []E, moves map[S]map[E]S, refusal fault.Code,
) {
	t.Helper()
	for _, s := range states {
		for _, e := range events {
			cell, err := table.Decide(s, e)
			next, allowed := moves[s][e]
			switch {
			case allowed && (err != nil || cell.Next != next):
				t.Errorf("%s/%s leads to %q instead of %q: %v", s, e, cell.Next, next, err)
			case !allowed && !fault.Has(err, refusal):
				t.Errorf("%s/%s leads to %q instead of a refusal: %v", s, e, cell.Next, err)
			}
		}
	}
}
