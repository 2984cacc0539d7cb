package agent

import (
	"net/netip"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// elsewhere is a network for documentation: nobody comes from it.
var elsewhere = netip.MustParsePrefix("192.0.2.0/24")

func accessOpensAndCloses(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	bystander, _ := made(t, s)
	session, other := logIn(t, s.Server, spec), logIn(t, s.Server, bystander)

	stop := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 2, Open: false, Disconnect: true}
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), stop))
	wantEnded(t, session)
	wantLogIn(t, s.Server, spec, false)
	if !other.Alive() {
		t.Error("a session in another database was ended")
	}
	if _, err := ports.Ask(bounded(t), s.Agent, command.DatabaseSize{DatabaseID: spec.DatabaseID}); err != nil {
		t.Errorf("the agent itself is shut out: %v", err)
	}

	start, fence := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 3, Open: true}, newFence()
	for range 2 { // the second time it is the same command
		noError(t, ports.Tell(bounded(t), s.Agent, fence, start))
		wantLogIn(t, s.Server, spec, true)
	}
}

func accessRestarts(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	session := logIn(t, s.Server, spec)
	restart, fence := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 2, Open: true, Disconnect: true}, newFence()
	noError(t, ports.Tell(bounded(t), s.Agent, fence, restart))
	wantEnded(t, session)
	wantLogIn(t, s.Server, spec, true)

	fresh := logIn(t, s.Server, spec)
	noError(t, ports.Tell(bounded(t), s.Agent, fence, restart))
	if !fresh.Alive() {
		t.Error("the same command disconnected a second time")
	}
}

func accessStale(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 5}))
	late := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 4, Open: true}
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, newFence(), late), command.ReasonStale,
		command.Generations{Applied: 5, Admitted: 5})
	wantLogIn(t, s.Server, spec, false)
}

func accessConflict(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	fence := newFence()
	noError(t, ports.Tell(bounded(t), s.Agent, fence, command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 2}))
	other := command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 2, Open: true}
	s.refuses(t, fence, other, command.ReasonConflict)
	wantLogIn(t, s.Server, spec, false)

	noError(t, ports.Close(bounded(t), s.Agent, fence))
	s.refuses(t, fence, command.SetAccess{DatabaseID: spec.DatabaseID, Generation: 3, Open: true}, command.ReasonClosed)
	wantLogIn(t, s.Server, spec, false)
}

func accessOfNothing(t *testing.T, s Stand) {
	spec := command.SetAccess{DatabaseID: newID[id.DatabaseID](), Generation: 1}
	s.refuses(t, newFence(), spec, command.ReasonNotFound)
}

func allowlistAdmits(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	session := logIn(t, s.Server, spec)
	here := netip.PrefixFrom(s.Server.From(), s.Server.From().BitLen())

	set(t, s, spec, 1, elsewhere, here)
	wantLogIn(t, s.Server, spec, true)
	if !session.Alive() {
		t.Error("a session from an admitted address was ended")
	}
	set(t, s, spec, 2, elsewhere)
	wantEnded(t, session)
	wantLogIn(t, s.Server, spec, false)
	set(t, s, spec, 3)
	wantLogIn(t, s.Server, spec, true)
}

func set(t *testing.T, s Stand, spec command.EnsureDatabase, generation int64, networks ...netip.Prefix) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, command.SetAllowlist{
		DatabaseID: spec.DatabaseID, Generation: generation, Networks: networks,
	}))
}

func allowlistStale(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	set(t, s, spec, 7, elsewhere)
	late := command.SetAllowlist{DatabaseID: spec.DatabaseID, Generation: 6}
	applied := command.Generations{Applied: 7, Admitted: 7}
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, late), command.ReasonStale, applied)
	other := command.SetAllowlist{DatabaseID: spec.DatabaseID, Generation: 7}
	wantGenerations(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, other), command.ReasonConflict, applied)
	wantLogIn(t, s.Server, spec, false)
}

func allowlistAgain(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	six := netip.MustParsePrefix("2001:db8::/32")
	set(t, s, spec, 1, elsewhere, six)
	set(t, s, spec, 1, six, elsewhere, six)
	wantLogIn(t, s.Server, spec, false)
}

func allowlistOfNothing(t *testing.T, s Stand) {
	spec := command.SetAllowlist{DatabaseID: newID[id.DatabaseID](), Generation: 1}
	s.refuses(t, ports.Fence{}, spec, command.ReasonNotFound)
}
