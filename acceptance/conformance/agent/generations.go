package agent

import (
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// wantGenerations checks a refusal and the generations that it names.
func wantGenerations(t *testing.T, err error, reason command.Reason, want command.Generations) {
	t.Helper()
	var no *command.Refusal
	switch {
	case !errors.As(err, &no) || no.Reason != reason:
		t.Errorf("got %v, want a refusal for %s", err, reason)
	case no.Generations == nil || *no.Generations != want:
		t.Errorf("%s names %+v, want %+v", reason, no.Generations, want)
	}
}

// A command that was begun and not done, here for want of a database, counts as admitted and not as applied.
func generationsOfNothing(t *testing.T, s Stand) {
	db := newID[id.DatabaseID]()
	admitted := command.Generations{Admitted: 5}
	s.refuses(t, ports.Fence{}, command.SetAllowlist{DatabaseID: db, Generation: 5}, command.ReasonNotFound)
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, command.SetAllowlist{DatabaseID: db, Generation: 4}),
		command.ReasonStale, admitted)
	s.refuses(t, newFence(), command.SetAccess{DatabaseID: db, Generation: 5}, command.ReasonNotFound)
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, newFence(), command.SetAccess{DatabaseID: db, Generation: 4}),
		command.ReasonStale, admitted)
}

// What was done is stale once something newer was, and no longer done: what is in force is not what the command says.
func accessDoneBefore(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	fence, stop := newFence(), command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 2, Disconnect: true}
	noError(t, ports.Tell(bounded(t), s.Agent, fence, stop))
	start := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 3, Open: true}
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), start))
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, fence, stop), command.ReasonStale,
		command.Generations{Applied: 3, Admitted: 3})
	wantLogIn(t, s.Server, spec, true)
}

// A rotation that is late by its credential's generation alone was admitted, and did nothing.
func roleStaleCredential(t *testing.T, s Stand) {
	g := admitted(t, s)
	rotation, fresh := g.rotation()
	rotation.CredentialGeneration = 4
	g.change(t, rotation)
	late, lateLogin := g.rotation()
	late.CredentialGeneration = 3
	_, err := ports.Do(bounded(t), g.Agent, changeFence(), late)
	wantGenerations(t, err, command.ReasonStale,
		command.Generations{Applied: rotation.Generation, Admitted: late.Generation, Credential: 4})
	_, err = ports.Do(bounded(t), g.Agent, changeFence(), rotation)
	wantGenerations(t, err, command.ReasonStale,
		command.Generations{Applied: rotation.Generation, Admitted: late.Generation, Credential: 4})
	g.wantIn(t, fresh, true)
	g.wantIn(t, lateLogin, false)
}

// A role whose name another one has, which its own control plane has forgotten, does not take that over: neither its rights nor
// its password.
func roleOfAnother(t *testing.T, s Stand) {
	g := admitted(t, s)
	other := g.role
	other.Generation, other.AccessProfile = g.generation(), role.ReadOnly
	g.refuses(t, changeFence(), preparation(other), command.ReasonNameTaken)
	g.wantIn(t, g.login, true)
}
