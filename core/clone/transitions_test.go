package clone

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
	"github.com/pgherd/pgherd/core/operation"
)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Stages, Events)
}

// moves is every way from one stage to another, written a second time. What they lack is refused as refusals say.
var moves = map[Stage]map[Event]Stage{
	Queued:    {Advance: Making, Cancel: Canceled},
	Making:    {Advance: Making, Cancel: Canceling, Made: Loading, MadeBare: Dumping, Refused: Failing},
	Dumping:   {Advance: Dumping, Cancel: Canceling, Dumped: Loading, Refused: Failing},
	Loading:   {Advance: Loading, Cancel: Canceling, Loaded: Switching, Refused: Failing},
	Switching: {Advance: Switching, Busy: Switching, Refused: Failing, Switched: Settling},
	Settling:  {Advance: Settling, Settled: Succeeded},
	Failing:   {Advance: Failing, Closed: Failed, Completed: Switching},
	Canceling: {Advance: Canceling, Cancel: Canceling, Closed: Canceled, Completed: Switching},
	Canceled:  {Cancel: Canceled},
}

func TestMoves(t *testing.T) {
	for _, e := range Events {
		refusal := fault.InternalError
		if e == Cancel {
			refusal = fault.DatabaseStateConflict
		}
		machinetest.Moves(t, Transitions, Stages, []Event{e}, moves, refusal)
	}
}

// No way out leaves a record in between, and from the intent to switch on, nothing leads to an end but the word of the agent.
func TestEveryEndSettlesTheRecord(t *testing.T) {
	record := map[Stage]string{Succeeded: OpenRecord, Failed: RemoveRecord, Canceled: RemoveRecord}
	for from, row := range Transitions {
		for e, cell := range row {
			if want := record[cell.Next]; want != "" && from != cell.Next && !slices.Contains(cell.Effects, want) {
				t.Errorf("%s/%s leads to %s without %q", from, e, cell.Next, want)
			}
			final := record[cell.Next] != ""
			if from == Switching && final || from == Settling && final && e != Settled {
				t.Errorf("%s/%s leads to %s", from, e, cell.Next)
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
	}{
		{operation.Queued, "queued", Queued, true},
		{operation.Running, "making", Making, true},
		{operation.Running, "dumping", Dumping, true},
		{operation.Running, "waiting", Loading, true},
		{operation.Running, "comparing", Loading, true},
		{operation.Running, "switching", Switching, false},
		{operation.Running, "settling", Settling, false},
		{operation.Running, "failing", Failing, false},
		{operation.Running, "canceling", Canceling, true},
		{operation.Succeeded, "finished", Succeeded, false},
		{operation.Failed, "finished", Failed, false},
		{operation.Canceled, "finished", Canceled, true},
	} {
		o := operation.Operation{Status: c.status, Stage: c.stage}
		if got := Of(o); got != c.want || Cancelable(o) != c.cancelable {
			t.Errorf("%s, %s: %s, cancelable %v", c.status, c.stage, got, Cancelable(o))
		}
	}
}
