package move

import (
	"slices"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of a move, beside those of every operation. From Serving on, the database is the other server's.
const (
	Making    stage.Stage = "making"
	Admitting stage.Stage = "admitting"
	Shutting  stage.Stage = "shutting" // closed moves only
	Dumping   stage.Stage = "dumping"
	Loading               = restore.Loading // the operation shows one of restore.Parts
	Switching stage.Stage = "switching"
	Following stage.Stage = "following" // all but closed moves
	Parting   stage.Stage = "parting"
	Serving   stage.Stage = "serving"
	Departing stage.Stage = "departing"
	Settling  stage.Stage = "settling"
	Leaving   stage.Stage = "leaving"
)

// The events of a move.
const (
	Made        stage.Event = "made"         // the database stands at the other server, empty and closed
	Admitted    stage.Event = "admitted"     // the server that has it lets the other one in
	AdmittedOne stage.Event = "admitted_one" // the same, of a closed move
	Shut        stage.Event = "shut"         // customers are kept out of a closed move
	Begun       stage.Event = "begun"        // the file is being written, or is there
	Loaded      stage.Event = "loaded"       // the copy is whole and compared
	Switched    stage.Event = "switched"     // the copy is the other server's database, which nobody gets into
	SwitchedAll stage.Event = "switched_all" // the same of a closed move, which misses nothing
	Near        stage.Event = "near"         // so little is missing that the rest comes in less than a second
	Pivoted     stage.Event = "pivoted"      // the record names the other server
	Served      stage.Event = "served"       // customers get in there
	Departed    stage.Event = "departed"     // the database is gone where it was
	Settled     stage.Event = "settled"      // it is known which backups came along
	Left        stage.Event = "left"         // where it was, nothing is left but what could not come along
)

// Effects of the table.
const (
	Repoint  = "the record names the other server"
	SendOn   = "who still comes is sent on"
	LetGoOf  = "what is left is let go of"
	ReopenAt = "close at both agents, the database is open where it was"
)

var (
	to       = stage.To
	refused  = to(stage.Failing, ReopenAt)
	canceled = to(stage.Canceling, ReopenAt)
)

// row are the cells of a stage.
type row = map[stage.Event]stage.Cell

// undoable are the cells of a stage before the parting, which a failure ends, or a request to cancel.
func undoable(r row) row {
	r[stage.Refused], r[stage.Cancel] = refused, canceled
	return r
}

// Machine is the machine of moves. The commit that leads to Serving is the pivot: until then every way out leaves the database
// where it was, and from then on there is no way back. What an agent has completed all the same, as metadata that went back
// do not know any more, leads there, too.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Making, Admitting, Shutting, Dumping, Loading, Switching, Following, Parting, Serving, Departing,
		Settling, Leaving, stage.Failing, stage.Canceling, stage.Succeeded, stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, stage.Cancel, Made, Admitted, AdmittedOne, Shut, Begun, Loaded, Switched, SwitchedAll, Near,
		stage.Refused, stage.Busy, Pivoted, Served, Departed, Settled, Left, stage.Closed,
		stage.Completed,
	},
	Loading,
	stage.Moves{
		stage.Queued: {stage.Advance: to(Making), stage.Cancel: to(stage.Canceled, stage.EmitEvent)},
		Making:       undoable(row{Made: to(Admitting)}),
		Admitting:    undoable(row{Admitted: to(Dumping), AdmittedOne: to(Shutting)}),
		Shutting:     undoable(row{Shut: to(Dumping), stage.Busy: to(Shutting)}),
		Dumping:      undoable(row{Begun: to(Loading)}),
		Loading:      undoable(row{Loaded: to(Switching)}),
		Switching:    undoable(row{Switched: to(Following), SwitchedAll: to(Parting, stage.CommitIntent)}),
		Following:    undoable(row{Near: to(Parting, stage.CommitIntent)}),
		Parting:      {Pivoted: to(Serving, Repoint, SendOn), stage.Busy: to(Following), stage.Refused: refused},
		Serving:      {Served: to(Departing)},
		Departing:    {Departed: to(Settling)},
		Settling:     {Settled: to(Leaving, stage.CommitIntent)},
		Leaving:      {Left: to(stage.Succeeded, LetGoOf, stage.EmitEvent)},
		stage.Failing: {
			stage.Closed: to(stage.Failed, stage.EmitEvent), stage.Completed: to(Serving, Repoint, SendOn),
		},
		stage.Canceling: {
			stage.Closed: to(stage.Canceled, stage.EmitEvent), stage.Completed: to(Serving, Repoint, SendOn),
		},
	})

// Pivotal reports whether the database is the other server's from this stage on.
func Pivotal(s stage.Stage) bool {
	return slices.Contains([]stage.Stage{Serving, Departing, Settling, Leaving, stage.Succeeded}, s)
}

// AdmitsPasswords reports whether passwords may be changed while a move is open, so that one that somebody knows need not be in
// force until its end: yes but for the moment of the pivot, and for as long as a closed move keeps customers out. The other
// server gets those that are in force when it lets customers in.
func AdmitsPasswords(o operation.Operation) bool {
	switch Machine.Of(o) { // in every other stage nobody gets in, or it is not known where
	case stage.Queued, Making, Admitting, Departing, Settling, Leaving:
		return true
	case Dumping, Loading, Switching, Following:
		in, err := operation.Decode[Input](o.Input)
		return err == nil && !in.Closed
	}
	return false
}
