package database

import (
	"testing"

	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
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
