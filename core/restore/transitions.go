package restore

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of a restore, beside those of every operation.
const (
	Loading   stage.Stage = "loading" // the operation shows one of Parts
	Ready     stage.Stage = "ready"
	Switching stage.Stage = "switching"
	Settling  stage.Stage = "settling"
)

// Parts are what an agent says that it is at while it makes a copy. The operation shows them in place of Loading; before that,
// where a file of a moment is made first, recovery.Stages and backup.Dumping.
var Parts = []string{Waiting, string(Loading), "granting", "comparing"}

// Waiting is the part before an agent begins: other work has its slots or its room.
const Waiting = "waiting"

// Shown is what the operation shows for a part of the loading. One that this version does not know is shown as Loading.
func Shown(part string) string {
	if slices.Contains(Parts, part) {
		return part
	}
	return string(Loading)
}

// The events of a restore.
const (
	Idle     stage.Event = "idle"     // no caller has come in time, and a worker has it
	Dumped   stage.Event = "dumped"   // there is a file of the moment to make the copy of
	Loaded   stage.Event = "loaded"   // the copy is whole and compared
	Switched stage.Event = "switched" // the copy is the database
	Settled  stage.Event = "settled"  // the settings are in force, and what was replaced is given up
)

// RaiseSetting is an effect of the table.
const RaiseSetting = "raise the generation of the settings"

var (
	to       = stage.To
	canceled = to(stage.Canceling, stage.CloseAtAgent)
	refused  = to(stage.Failing, stage.CloseAtAgent)
	terminal = machine.Refuse[stage.Stage](fault.RestoreOperationTerminal)
)

// Machine is the machine of restores. Switching is the point of no return: from its intent on, the agent alone knows which
// database customers have, and only its word leads back.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Loading, Ready, Switching, Settling, stage.Failing, stage.Canceling,
		stage.Succeeded, stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, Idle, stage.Cancel, Dumped, Loaded, stage.Refused, stage.Busy, Switched, Settled, stage.Closed, stage.Completed,
	},
	Loading,
	stage.Moves{
		stage.Queued: {
			stage.Advance: to(Loading), Idle: canceled, stage.Cancel: to(stage.Canceled, stage.EmitEvent),
		},
		Loading:   {Idle: canceled, stage.Cancel: canceled, Dumped: to(Loading), Loaded: to(Ready), stage.Refused: refused},
		Ready:     {stage.Advance: to(Switching, stage.CommitIntent), Idle: canceled, stage.Cancel: canceled},
		Switching: {Idle: to(Switching), stage.Refused: refused, stage.Busy: to(Switching), Switched: to(Settling, RaiseSetting)},
		Settling:  {Idle: to(Settling), Settled: to(stage.Succeeded, stage.EmitEvent)},
		stage.Failing: {
			Idle: to(stage.Failing), stage.Closed: to(stage.Failed, stage.EmitEvent), stage.Completed: to(Switching),
		},
		stage.Canceling: {
			Idle: to(stage.Canceling), stage.Closed: to(stage.Canceled, stage.EmitEvent), stage.Completed: to(Switching),
		},
		stage.Succeeded: {stage.Advance: to(stage.Succeeded)},
		stage.Failed:    {stage.Advance: terminal},
		stage.Canceled:  {stage.Advance: terminal},
	})

// Away is how long the callers of a managed restore may stay away at a stage. What has to be finished in any case does not wait
// for them.
func Away(s stage.Stage) time.Duration {
	if s == stage.Queued || s == Loading || s == Ready {
		return CallerAway
	}
	return WorkAway
}

// Driven reports whether a restore waits for its callers, and ends when none comes.
func Driven(o operation.Operation) bool {
	in, err := operation.Decode[Input](o.Input)
	return err == nil && in.Managed && Away(Machine.Of(o)) == CallerAway
}
