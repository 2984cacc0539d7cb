package restore

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
	"github.com/pgherd/pgherd/core/operation"
)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Stages, Events)
}

// moves is every way from one stage to another, written a second time. What they lack is refused as refusals say.
var moves = map[Stage]map[Event]Stage{
	Queued:    {Advance: Loading, Idle: Canceling, Cancel: Canceled},
	Loading:   {Advance: Loading, Idle: Canceling, Cancel: Canceling, Loaded: Ready, Refused: Failing},
	Ready:     {Advance: Switching, Idle: Canceling, Cancel: Canceling},
	Switching: {Advance: Switching, Idle: Switching, Busy: Switching, Refused: Failing, Switched: Settling},
	Settling:  {Advance: Settling, Idle: Settling, Settled: Succeeded},
	Failing:   {Advance: Failing, Idle: Failing, Closed: Failed, Completed: Switching},
	Canceling: {Advance: Canceling, Idle: Canceling, Cancel: Canceling, Closed: Canceled, Completed: Switching},
	Succeeded: {Advance: Succeeded},
	Canceled:  {Cancel: Canceled},
}

func refusal(s Stage, e Event) fault.Code {
	switch {
	case e == Cancel:
		return fault.DatabaseStateConflict
	case e == Advance && (s == Failed || s == Canceled):
		return fault.RestoreOperationTerminal
	}
	return fault.InternalError
}

func TestMoves(t *testing.T) {
	for _, s := range Stages {
		for _, e := range Events {
			machinetest.Moves(t, Transitions, []Stage{s}, []Event{e}, moves, refusal(s, e))
		}
	}
}

// From the intent to switch on, nothing leads to an end but the word of the agent; before it nothing leads to the switch but an
// advance.
func TestThePointOfNoReturn(t *testing.T) {
	for from, row := range Transitions {
		for e, cell := range row {
			final := cell.Next == Succeeded || cell.Next == Failed || cell.Next == Canceled
			switch {
			case from == Switching && final, from == Settling && final && e != Settled:
				t.Errorf("%s/%s leads to %s", from, e, cell.Next)
			case cell.Next == Switching && from != Switching && e != Completed && (from != Ready || e != Advance):
				t.Errorf("%s/%s leads to the switch", from, e)
			}
		}
	}
}

func TestStagesOfOperations(t *testing.T) {
	for _, c := range []struct {
		status     operation.Status
		stage      string
		want       Stage
		cancelable bool
		away       time.Duration
	}{
		{operation.Queued, "queued", Queued, true, time.Hour},
		{operation.Running, "queued", Queued, true, time.Hour},
		{operation.Running, "comparing", Loading, true, time.Hour},
		{operation.Running, "ready", Ready, true, time.Hour},
		{operation.Running, "switching", Switching, false, 10 * time.Second},
		{operation.Running, "settling", Settling, false, 10 * time.Second},
		{operation.Running, "failing", Failing, false, 10 * time.Second},
		{operation.Running, "canceling", Canceling, true, 10 * time.Second},
		{operation.Succeeded, "finished", Succeeded, false, 10 * time.Second},
		{operation.Failed, "finished", Failed, false, 10 * time.Second},
		{operation.Canceled, "finished", Canceled, true, 10 * time.Second},
	} {
		o := operation.Operation{Status: c.status, Stage: c.stage}
		if got := Of(o); got != c.want || Cancelable(o) != c.cancelable || got.Away() != c.away {
			t.Errorf("%s, %s: %s, cancelable %v, callers may stay away for %s", c.status, c.stage, got, Cancelable(o), got.Away())
		}
	}
}

// An agent's word never passes for a stage of the machine.
func TestWhatAnAgentIsAt(t *testing.T) {
	for part, want := range map[string]string{
		"comparing": "comparing", "waiting": "waiting", "of tomorrow": "loading", "switching": "loading",
		"queued": "loading", "": "loading",
	} {
		if got := Shown(part); got != want || Of(operation.Operation{Stage: got}) != Loading {
			t.Errorf("%q is shown as %q", part, got)
		}
	}
}
