package move

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// walk draws what happens to a move, and returns how it has ended, with the effects on its way.
func walk(t *rapid.T) (end stage.Stage, effects []string) {
	s := stage.Queued
	for range 200 {
		var may []stage.Event
		for _, e := range Machine.Events {
			if Machine.Admits(s, e) {
				may = append(may, e)
			}
		}
		if operation.Status(s).Final() || len(may) == 0 {
			return s, effects
		}
		cell, err := Machine.Decide(s, rapid.SampledFrom(may).Draw(t, string(s)))
		if err != nil {
			t.Fatal(err)
		}
		if cell.Next != s {
			effects = append(effects, cell.Effects...)
		}
		s = cell.Next
	}
	return s, effects
}

// Whatever happens in whichever order, the record is repointed once in a move that succeeds, and never in one that does not.
func TestTheRecordIsRepointedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end, effects := walk(t)
		n := 0
		for _, e := range effects {
			if e == Repoint {
				n++
			}
		}
		switch {
		case n > 1:
			t.Fatalf("repointed %d times: %v", n, effects)
		case Pivotal(end) && n != 1:
			t.Fatalf("%s without being repointed: %v", end, effects)
		case !Pivotal(end) && n != 0:
			t.Fatalf("%s, and repointed: %v", end, effects)
		}
	})
}

// The pivot is the only way to the stages after it, and there is none back.
func TestThePivot(t *testing.T) {
	for from, row := range Machine.Table {
		for e, cell := range row {
			switch {
			case cell.Code != "":
			case Pivotal(from) && !Pivotal(cell.Next):
				t.Errorf("%s/%s leads back to %s", from, e, cell.Next)
			case !Pivotal(from) && Pivotal(cell.Next) && !slices.Contains(cell.Effects, Repoint):
				t.Errorf("%s/%s leads to %s without %q", from, e, cell.Next, Repoint)
			}
		}
	}
}

// Whatever was begun is closed at both agents before a move has failed or is canceled.
func TestNothingIsLeftBegun(t *testing.T) {
	for from, row := range Machine.Table {
		for e, cell := range row {
			ends := cell.Next == stage.Failed || cell.Next == stage.Canceled
			if ends && from != cell.Next && from != stage.Queued && e != stage.Closed {
				t.Errorf("%s/%s ends as %s", from, e, cell.Next)
			}
		}
	}
}
