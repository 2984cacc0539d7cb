package database

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestMachineIsComplete(t *testing.T) {
	if holes := Transitions.Holes(Statuses, Events); len(holes) > 0 {
		t.Errorf("missing cells: %v", holes)
	}
	if len(Transitions) != len(Statuses) {
		t.Errorf("%d rows for %d statuses", len(Transitions), len(Statuses))
	}
	for s, row := range Transitions {
		if len(row) != len(Events) {
			t.Errorf("%s: %d cells for %d events", s, len(row), len(Events))
		}
		for e, cell := range row {
			switch {
			case cell.Code != "" && (!cell.Code.Known() || cell.Next != ""):
				t.Errorf("%s/%s: %+v", s, e, cell)
			case cell.Code == "" && Transitions[cell.Next] == nil:
				t.Errorf("%s/%s leads to %q", s, e, cell.Next)
			}
		}
	}
}

// moves is every way from one status to another, written a second time.
var moves = map[Status]map[Event]Status{
	Creating: {Created: Active, CreateFailed: Error},
	Active:   {Start: Active, Stop: Stopped, Restart: Active, Delete: Deleting, Backup: Active, Configure: Active},
	Stopped:  {Start: Active, Stop: Stopped, Delete: Deleting, Backup: Stopped, Configure: Stopped},
	Deleting: {ReopenAsActive: Active, ReopenAsStopped: Stopped, ReopenAsError: Error},
	Error:    {CreateFailed: Error, FoundWhole: Active, Delete: Deleting},
}

func TestMoves(t *testing.T) {
	for _, s := range Statuses {
		for _, e := range Events {
			cell, err := s.Decide(e)
			next, allowed := moves[s][e]
			switch {
			case allowed && (err != nil || cell.Next != next):
				t.Errorf("%s/%s: %s, %v", s, e, cell.Next, err)
			case !allowed && !fault.Has(err, fault.DatabaseStateConflict):
				t.Errorf("%s/%s: %s, %v", s, e, cell.Next, err)
			}
		}
	}
}

// A lifecycle action has an effect exactly where something has to be done on the server.
func TestLifecycleEffects(t *testing.T) {
	want := map[Status]map[Event]int{Active: {Start: 0, Stop: 2, Restart: 1}, Stopped: {Start: 1, Stop: 0}}
	for s, row := range want {
		for e, n := range row {
			if cell := Transitions[s][e]; len(cell.Effects) != n {
				t.Errorf("%s/%s: %v", s, e, cell.Effects)
			}
		}
	}
}

func TestUnknownStatusIsInternal(t *testing.T) {
	if _, err := Status("lost").Decide(Start); !fault.Has(err, fault.InternalError) {
		t.Error(err)
	}
}
