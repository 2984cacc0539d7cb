package database

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
}

// moves is every way from one status to another, written a second time.
var moves = map[Status]map[Event]Status{
	Creating: {Created: Active, CreateFailed: Error},
	Active: {
		Start: Active, Stop: Stopped, Restart: Active, AccessLost: Error, Delete: Deleting, Backup: Active, Configure: Active,
		Restore: Active,
	},
	Stopped: {
		Start: Active, Stop: Stopped, AccessLost: Error, Delete: Deleting, Backup: Stopped, Configure: Stopped, Restore: Stopped,
	},
	Deleting: {ReopenAsActive: Active, ReopenAsStopped: Stopped, ReopenAsError: Error, Isolate: Deleted},
	Deleted: {
		ReopenAsActive: Active, ReopenAsStopped: Stopped, ReopenAsError: Error, Recover: Deleted, Purge: Purging,
	},
	Error: {
		CreateFailed: Error, Stop: Stopped, FoundWhole: Active, AccessLost: Error, Delete: Deleting, ReopenAsActive: Active,
		ReopenAsStopped: Stopped,
	},
}

func TestMoves(t *testing.T) {
	machinetest.Moves(t, Transitions, Statuses, Events, moves, fault.DatabaseStateConflict)
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
