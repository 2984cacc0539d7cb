package agent

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

func accountsKept(t *testing.T, s Stand) {
	first, _ := made(t, s)
	second, _ := made(t, s)
	account := newID[id.AccountID]()
	if got := s.Server.AccountOf(first.DatabaseID); got == "" || got != first.AccountID {
		t.Errorf("the database that was made is of %q, want %s", got, first.AccountID)
	}
	both := []database.Ownership{
		{DatabaseID: first.DatabaseID, AccountID: account}, {DatabaseID: second.DatabaseID, AccountID: account},
	}
	noError(t, ask(bounded(t), s.Agent, command.SetAccounts{Databases: both[:1]}))
	for range 2 {
		noError(t, ask(bounded(t), s.Agent, command.SetAccounts{Databases: both[1:]}))
	}
	for _, d := range both {
		if got := s.Server.AccountOf(d.DatabaseID); got != account {
			t.Errorf("database %s is of %q, want %s", d.DatabaseID, got, account)
		}
	}
}

// A list that is longer than one request, with one database that the server has.
func accountsOfNothing(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	account := newID[id.AccountID]()
	var list []database.Ownership
	for range 15_000 {
		list = append(list, database.Ownership{DatabaseID: newID[id.DatabaseID](), AccountID: newID[id.AccountID]()})
	}
	list = append(list, database.Ownership{DatabaseID: spec.DatabaseID, AccountID: account})
	for part := range slices.Chunk(list, command.AccountsAtOnce) {
		noError(t, ask(bounded(t), s.Agent, command.SetAccounts{Databases: part}))
	}
	noError(t, ask(bounded(t), s.Agent, command.SetAccounts{Databases: nil}))
	if got := s.Server.AccountOf(spec.DatabaseID); got != account {
		t.Errorf("the database is of %q, want %s", got, account)
	}
}
