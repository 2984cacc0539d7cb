// Package stage holds what the machines of operations with stages have in common. What a kind of operations adds, its stages, its
// events and its table, stands in its own area.
package stage

import (
	"maps"
	"slices"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// Stage is where an operation stands.
type Stage string

// The stages that most kinds have. The last three are the final statuses.
const (
	Queued    Stage = operation.StageQueued
	Failing   Stage = "failing"   // the failure is committed, and what was begun is being taken back
	Canceling Stage = "canceling" // the same after a user's request
	Succeeded Stage = Stage(operation.Succeeded)
	Failed    Stage = Stage(operation.Failed)
	Canceled  Stage = Stage(operation.Canceled)
)

// Event is what happens to an operation.
type Event string

// The events that most kinds have.
const (
	Advance   Event = "advance"   // the next step
	Cancel    Event = "cancel"    // a user asks
	Refused   Event = "refused"   // by the agent for good, or by an operator's order
	Busy      Event = "busy"      // the agent could not have the database alone, and has changed nothing
	Closed    Event = "closed"    // at the agent: nothing is left of what was begun
	Completed Event = "completed" // the agent says that it cannot be closed, as the work is done
)

// Effects of the tables.
const (
	CommitIntent = "commit the intent"
	CloseAtAgent = "close at agent"
	EmitEvent    = "emit event"
)

// Cell is what an event does at a stage.
type Cell = machine.Cell[Stage]

// To leads to another stage, or to the same one.
func To(next Stage, effects ...string) Cell { return machine.To(next, effects...) }

// Moves are the cells of a machine that say more than the others; see New.
type Moves map[Stage]map[Event]Cell

// Machine is the machine of a kind of operations.
type Machine struct {
	machine.Table[Stage, Event]
	Stages []Stage // in the order of the docs
	Events []Event
	// Shown is the stage of an operation that shows something else in its place, such as what its agent is at.
	Shown Stage

	parts map[string]Stage
}

// New makes a machine of its moves. For what they leave out: Advance stays at a stage that has begun and is not final, Cancel
// stays at one that is canceled, or refuses with DATABASE_STATE_CONFLICT, and any other event refuses with INTERNAL_ERROR, as it
// is a mistake of the program. docs/develop/states.md shows every cell.
func New(stages []Stage, events []Event, shown Stage, moves Moves) Machine {
	m := Machine{Table: machine.Table[Stage, Event]{}, Stages: stages, Events: events, Shown: shown}
	for s, row := range moves {
		m.Table[s] = maps.Clone(row)
	}
	for _, s := range stages {
		if m.Table[s] == nil {
			m.Table[s] = map[Event]Cell{}
		}
		for _, e := range events {
			if _, said := m.Table[s][e]; !said {
				m.Table[s][e] = rest(s, e)
			}
		}
	}
	return m
}

// Showing is the machine of operations that show these words, such as what an agent is at, in place of a stage.
func (m Machine) Showing(in Stage, words ...string) Machine {
	parts := maps.Clone(m.parts)
	if parts == nil {
		parts = map[string]Stage{}
	}
	for _, w := range words {
		parts[w] = in
	}
	m.parts = parts
	return m
}

func rest(s Stage, e Event) Cell {
	switch begun := s != Queued && !operation.Status(s).Final(); {
	case e == Advance && begun, e == Cancel && (s == Canceling || s == Canceled):
		return To(s)
	case e == Cancel:
		return machine.Refuse[Stage](fault.DatabaseStateConflict)
	}
	return machine.Refuse[Stage](fault.InternalError)
}

// Of is the stage of an operation.
func (m Machine) Of(o operation.Operation) Stage {
	s := Stage(o.Stage)
	if o.Status.Final() {
		s = Stage(o.Status)
	}
	if slices.Contains(m.Stages, s) {
		return s
	}
	if in, known := m.parts[o.Stage]; known {
		return in
	}
	return m.Shown
}

// Admits reports whether an event leads anywhere.
func (m Machine) Admits(s Stage, on Event) bool {
	_, err := m.Decide(s, on)
	return err == nil
}

// Cancelable reports whether an operation may still be canceled.
func (m Machine) Cancelable(o operation.Operation) bool { return m.Admits(m.Of(o), Cancel) }
