package conformance

import (
	"net/netip"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// elsewhere is a network for documentation: nobody comes from it.
var elsewhere = netip.MustParsePrefix("192.0.2.0/24")

func accessOpensAndCloses(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	bystander, _ := made(t, s)
	session, other := logIn(t, s.Server, spec), logIn(t, s.Server, bystander)

	stop := ports.AccessSpec{DatabaseID: spec.ID, Generation: 2, Open: false, Disconnect: true}
	noError(t, s.Agent.SetAccess(bounded(t), newFence(), stop))
	wantEnded(t, session)
	wantLogIn(t, s.Server, spec, false)
	if !other.Alive() {
		t.Error("a session in another database was ended")
	}
	if _, err := s.Agent.DatabaseSize(bounded(t), spec.ID); err != nil {
		t.Errorf("the agent itself is shut out: %v", err)
	}

	start, fence := ports.AccessSpec{DatabaseID: spec.ID, Generation: 3, Open: true}, newFence()
	for range 2 { // the second time it is the same command
		noError(t, s.Agent.SetAccess(bounded(t), fence, start))
		wantLogIn(t, s.Server, spec, true)
	}
}

func accessRestarts(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	session := logIn(t, s.Server, spec)
	restart, fence := ports.AccessSpec{DatabaseID: spec.ID, Generation: 2, Open: true, Disconnect: true}, newFence()
	noError(t, s.Agent.SetAccess(bounded(t), fence, restart))
	wantEnded(t, session)
	wantLogIn(t, s.Server, spec, true)

	fresh := logIn(t, s.Server, spec)
	noError(t, s.Agent.SetAccess(bounded(t), fence, restart))
	if !fresh.Alive() {
		t.Error("the same command disconnected a second time")
	}
}

func accessStale(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	noError(t, s.Agent.SetAccess(bounded(t), newFence(), ports.AccessSpec{DatabaseID: spec.ID, Generation: 5}))
	late := ports.AccessSpec{DatabaseID: spec.ID, Generation: 4, Open: true}
	wantGenerations(t, s.Agent.SetAccess(bounded(t), newFence(), late), ports.ReasonStale,
		ports.AgentGenerations{Applied: 5, Admitted: 5})
	wantLogIn(t, s.Server, spec, false)
}

func accessConflict(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	fence := newFence()
	noError(t, s.Agent.SetAccess(bounded(t), fence, ports.AccessSpec{DatabaseID: spec.ID, Generation: 2}))
	other := ports.AccessSpec{DatabaseID: spec.ID, Generation: 2, Open: true}
	wantReason(t, s.Agent.SetAccess(bounded(t), fence, other), ports.ReasonConflict)
	wantLogIn(t, s.Server, spec, false)

	noError(t, s.Agent.Close(bounded(t), fence))
	wantReason(t, s.Agent.SetAccess(bounded(t), fence, ports.AccessSpec{DatabaseID: spec.ID, Generation: 3, Open: true}),
		ports.ReasonClosed)
	wantLogIn(t, s.Server, spec, false)
}

func accessOfNothing(t *testing.T, s AgentStand) {
	spec := ports.AccessSpec{DatabaseID: agentID[id.DatabaseID](), Generation: 1}
	wantReason(t, s.Agent.SetAccess(bounded(t), newFence(), spec), ports.ReasonNotFound)
}

func allowlistAdmits(t *testing.T, s AgentStand) {
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

func set(t *testing.T, s AgentStand, spec ports.DatabaseSpec, generation int64, networks ...netip.Prefix) {
	t.Helper()
	noError(t, s.Agent.SetAllowlist(bounded(t), ports.AllowlistSpec{
		DatabaseID: spec.ID, Generation: generation, Networks: networks,
	}))
}

func allowlistStale(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	set(t, s, spec, 7, elsewhere)
	late := ports.AllowlistSpec{DatabaseID: spec.ID, Generation: 6}
	applied := ports.AgentGenerations{Applied: 7, Admitted: 7}
	wantGenerations(t, s.Agent.SetAllowlist(bounded(t), late), ports.ReasonStale, applied)
	other := ports.AllowlistSpec{DatabaseID: spec.ID, Generation: 7}
	wantGenerations(t, s.Agent.SetAllowlist(bounded(t), other), ports.ReasonConflict, applied)
	wantLogIn(t, s.Server, spec, false)
}

func allowlistAgain(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	six := netip.MustParsePrefix("2001:db8::/32")
	set(t, s, spec, 1, elsewhere, six)
	set(t, s, spec, 1, six, elsewhere, six)
	wantLogIn(t, s.Server, spec, false)
}

func allowlistOfNothing(t *testing.T, s AgentStand) {
	spec := ports.AllowlistSpec{DatabaseID: agentID[id.DatabaseID](), Generation: 1}
	wantReason(t, s.Agent.SetAllowlist(bounded(t), spec), ports.ReasonNotFound)
}
