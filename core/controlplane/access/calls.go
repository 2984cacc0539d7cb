package access

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/rollout"
)

// MayCall waits until a request may call the agent of its database's server. Every request that makes an agent work comes here
// before it stores anything, so that one that is refused has changed nothing; it gives the slot back at its end. Without it,
// one account whose calls all hang could have all connections to an agent, and everybody else would wait behind it. It counts
// against the caller's account, whose database it may not be. Work that batch hosts continue needs no slot, so it is never
// refused.
//
// No transaction may be open: those who hold a slot may need its locks. RATE_LIMITED: the account has Config.CallsPerAccount
// under way. SERVER_BUSY: the server has Config.CallsPerServer. Both only after Config.CallWait.
func (r Reached) MayCall(ctx context.Context, p *base.Base) (release func(), err error) {
	return p.Calls.Enter(ctx, r.Caller().Account.ID, r.record.ServerID)
}

// PermitCall is Permit, and then MayCall.
func (r Reached) PermitCall(
	ctx context.Context, p *base.Base, a account.Action, gates ...rollout.Gate,
) (release func(), err error) {
	if err := r.Permit(a, gates...); err != nil {
		return nil, err
	}
	return r.MayCall(ctx, p)
}
