package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

// maxRequests is how many requests of an account may have or wait for a slot of a call, in one process. It bounds memory only.
const maxRequests = 512

func newCalls(c Config) *gate {
	return newGate(slot.Limits{PerAccount: maxRequests, Share: c.CallsPerAccount, PerServer: c.CallsPerServer}, c.CallWait,
		"the account has too many requests under way that wait for a database server",
		"too many requests wait for this database server at the moment")
}

// mayCall waits until a request may call the agent of its database's server. Every request that makes an agent work comes here
// before it stores anything, so that one that is refused has changed nothing; it gives the slot back at its end. Without it, one
// account whose calls all hang could have all connections to an agent, and everybody else would wait behind it. It counts
// against the caller's account, whose database it may not be. What batch hosts continue needs no slot, so it is never refused.
//
// No transaction may be open: those who hold a slot may need its locks. RATE_LIMITED: the account has Config.CallsPerAccount
// under way. SERVER_BUSY: the server has Config.CallsPerServer. Both only after Config.CallWait.
func (b *base) mayCall(ctx context.Context, r Reached) (release func(), err error) {
	return b.calls.enter(ctx, r.caller.Account.ID, r.record.ServerID)
}

// mayCreate is mayCall for a database that has no server yet. It waits for no server, since another may be chosen.
func (b *base) mayCreate(ctx context.Context, account id.AccountID) (release func(), err error) {
	return b.calls.enter(ctx, account, slot.Unplaced)
}
