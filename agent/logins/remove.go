package logins

import (
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// removeRole drops an additional role, unless something depends on it. Nothing of a customer's is ever dropped or given to
// somebody else for that. A role that is not there, or none of ours, leaves no row and no gate behind.
func (x *Logins) removeRole(
	ctx context.Context, e protocol.Command, c command.RemoveRole,
) (found role.Dependencies, err error) {
	l, err := x.login(ctx, string(c.DatabaseID), c.Username)
	if err != nil {
		return found, err
	}
	crash.Point(crash.RemoveAdmitted)
	if err := x.shutForRemoval(ctx, l); err != nil {
		return found, err
	}
	crash.Point(crash.RemoveShut)
	found, err = x.dropUnlessNeeded(ctx, l, c)
	if err != nil {
		return found, err
	}
	crash.Point(crash.RemoveDropped)
	x.pooler.SyncSoon(x.ledger.PoolerState)
	return ledger.Conclude(ctx, x.ledger, e, found, crash.RemoveReply)
}

// shutForRemoval leaves a role that may not log in, has no password and no session.
func (x *Logins) shutForRemoval(ctx context.Context, l loginRow) error {
	if err := x.closeGate(ctx, l, role.Removal); err != nil {
		return err
	}
	if _, err := x.pooler.Expel(ctx, pooler.OfLogin(l.name)); err != nil {
		return err
	}
	ended := make(endedSessions)
	if err := x.forbidLogin(ctx, l, ended); err != nil {
		return err
	}
	if err := x.endLogin(ctx, l, ended); err != nil {
		return err
	}
	return x.setCredential(ctx, l, command.ChangeLogin{Want: role.Removal})
}

// dropTries is how often something may come to depend on a role between the look and the drop, or an open transaction may be in
// its way, before the role is retired.
const dropTries = 3

// dropUnlessNeeded drops a role, or retires it where only others keep it. Or it tells what of the account's keeps it, and lets
// the owner at what the role has.
func (x *Logins) dropUnlessNeeded(ctx context.Context, l loginRow, c command.RemoveRole) (role.Dependencies, error) {
	none := noDependencies()
	p := loginPlan{loginRow: l}
	if !l.exists {
		return none, pg.Atomically(ctx, x.db, p.forgetStatements()...)
	}
	ending := p.ending()
	for range dropTries {
		d, err := x.dependentsOf(ctx, l, c.AccountDatabases)
		switch {
		case err != nil:
			return none, err
		case len(d.told.List) > 0:
			return d.told, x.ledger.Insist(ctx, p.cedeStatement())
		case d.elsewhere:
			return none, x.retire(ctx, l, ending)
		}
		if err = x.ledger.Soon(ctx, ending.Drop()...); !retire.IsKept(err) {
			return none, err
		}
	}
	return none, x.retire(ctx, l, ending)
}

// retire retires a role that nothing told keeps. Only who changes the role itself can be in the way: that is the account, or a
// function that the role has made in the hands of others. It is waited for first, and then ended.
func (x *Logins) retire(ctx context.Context, l loginRow, e retire.Ending) error {
	statements := e.Retire()
	err := x.ledger.Insist(ctx, statements...)
	if ledger.InTheWay(err) {
		err = x.forced(ctx, l, make(endedSessions), statements...)
	}
	if err == nil {
		x.ledger.Retired.Wake()
	}
	return err
}
