package conformance

import (
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func accountsKept(t *testing.T, s AgentStand) {
	first, _ := made(t, s)
	second, _ := made(t, s)
	account := agentID[id.AccountID]()
	if got := s.Server.AccountOf(first.ID); got != "" {
		t.Errorf("before the agent was told, the database is of %q", got)
	}
	both := []ports.DatabaseAccount{{DatabaseID: first.ID, AccountID: account}, {DatabaseID: second.ID, AccountID: account}}
	noError(t, s.Agent.SetAccounts(bounded(t), both[:1]))
	for range 2 {
		noError(t, s.Agent.SetAccounts(bounded(t), both[1:]))
	}
	for _, d := range both {
		if got := s.Server.AccountOf(d.DatabaseID); got != account {
			t.Errorf("database %s is of %q, want %s", d.DatabaseID, got, account)
		}
	}
}

// A list that is longer than one request, with one database that the server has.
func accountsOfNothing(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	account := agentID[id.AccountID]()
	var list []ports.DatabaseAccount
	for range 15_000 {
		list = append(list, ports.DatabaseAccount{DatabaseID: agentID[id.DatabaseID](), AccountID: agentID[id.AccountID]()})
	}
	list = append(list, ports.DatabaseAccount{DatabaseID: spec.ID, AccountID: account})
	noError(t, s.Agent.SetAccounts(bounded(t), list))
	noError(t, s.Agent.SetAccounts(bounded(t), nil))
	if got := s.Server.AccountOf(spec.ID); got != account {
		t.Errorf("the database is of %q, want %s", got, account)
	}
}
