package agent

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var heardCases = map[string]func(t *testing.T, s Stand){
	"operations are vouched for":                heardVouched,
	"nothing is destroyed that is not known of": heardProtects,
}

func heardBy(t *testing.T, s Stand) command.Heard {
	t.Helper()
	return must(ports.Ask(bounded(t), s.Agent, command.AskHeard{}))(t)
}

func vouch(t *testing.T, s Stand, q command.Vouch) {
	t.Helper()
	noError(t, ask(bounded(t), s.Agent, q))
}

// What is sent under no epoch need not be in any metadata. An operator's word ends it all.
func heardVouched(t *testing.T, s Stand) {
	defer vouch(t, s, command.Vouch{All: true})
	vouch(t, s, command.Vouch{All: true})
	spec, fence := made(t, s)
	noError(t, ports.Tell(bounded(t), s.Agent, ports.Fence{OperationID: newID[id.OperationID]()},
		command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 5, Open: true}))
	if h := heardBy(t, s); h.Last != "" || !slices.Equal(h.Operations, []id.OperationID{fence.OperationID}) || h.More {
		t.Errorf("of one operation it has heard %+v", h)
	}
	for range 2 {
		vouch(t, s, command.Vouch{Operations: []id.OperationID{fence.OperationID, newID[id.OperationID]()}})
		if h := heardBy(t, s); h.Last != fence.OperationID || len(h.Operations) > 0 {
			t.Errorf("of one that is vouched for it has heard %+v", h)
		}
	}
	second := newFence()
	noError(t, ports.Tell(bounded(t), s.Agent, second, command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 6, Open: true}))
	if h := heardBy(t, s); h.Last != fence.OperationID || !slices.Equal(h.Operations, []id.OperationID{second.OperationID}) {
		t.Errorf("of two operations it has heard %+v", h)
	}
	vouch(t, s, command.Vouch{Operations: []id.OperationID{second.OperationID}})
	if h := heardBy(t, s); h.Last != second.OperationID || len(h.Operations) > 0 {
		t.Errorf("of two that are vouched for it has heard %+v", h)
	}
}

func heardProtects(t *testing.T, s Stand) {
	defer vouch(t, s, command.Vouch{All: true})
	d := deletableOf(t, s)
	d.deleted(t)
	purge := newFence()
	vouch(t, s, command.Vouch{All: true})
	back := newFence() // which who purges may not know of
	must(ports.Do(bounded(t), s.Agent, back, d.comeback(true)))(t)
	isolating := newFence()
	noError(t, ports.Tell(bounded(t), s.Agent, isolating, d.isolation()))
	vouch(t, s, command.Vouch{Operations: []id.OperationID{isolating.OperationID}})
	file := command.DeleteBackup{DatabaseID: d.spec.DatabaseID, Filename: d.last.Filename}
	wantReason(t, ask(bounded(t), s.Agent, file), command.ReasonBehind)
	s.refuses(t, purge, d.purge(), command.ReasonBehind)
	d.wantIsolated(t)
	other, making := made(t, s)
	vouch(t, s, command.Vouch{Operations: []id.OperationID{making.OperationID}})
	noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: other.DatabaseID, Filename: d.last.Filename}))
	vouch(t, s, command.Vouch{Operations: []id.OperationID{back.OperationID, purge.OperationID}})
	noError(t, ask(bounded(t), s.Agent, file))
	noError(t, ports.Tell(bounded(t), s.Agent, purge, d.purge()))
	wantNothing(t, s.Server, d.spec)
}
