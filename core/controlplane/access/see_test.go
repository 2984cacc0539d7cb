package access

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
)

// Of what its admission has read, a full-account key alone sees a database, while that is there.
func TestWhoSeesWhatTheAdmissionHasRead(t *testing.T) {
	key := func(kind account.KeyKind, scope account.Scope) Caller {
		c := Caller{Key: account.Key{ID: "k1234567", Kind: kind, Scope: scope}, Account: account.Account{ID: "a"}}
		if kind == account.CIKey {
			c.Key.NamespaceID = "n"
		}
		return c
	}
	full := key(account.AccountKey, account.FullAccount)
	active := database.Summary{ID: "d", Status: database.Active}
	for name, c := range map[string]struct {
		caller  Caller
		summary database.Summary
		sees    bool
	}{
		"a full key":        {full, active, true},
		"of nothing":        {full, database.Summary{}, false},
		"one being deleted": {full, database.Summary{ID: "d", Status: database.Deleting}, true},
		"one deleted":       {full, database.Summary{ID: "d", Status: database.Deleted}, false},
		"a selected key":    {key(account.AccountKey, account.SelectedDatabases), active, false},
		"a CI key":          {key(account.CIKey, account.SelectedDatabases), active, false},
	} {
		if got := c.caller.Sees(c.summary); got != c.sees {
			t.Errorf("%s: %v", name, got)
		}
	}
}
