package logins

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// prepareRole makes an additional role without log-in, or finds it there, and has PgBouncer take up its limit.
func (x *Logins) prepareRole(ctx context.Context, e protocol.Command, c command.PrepareRole) (none command.None, err error) {
	l, err := x.login(ctx, string(c.DatabaseID), c.Username)
	switch {
	case err != nil:
		return none, err
	case !l.model().Names(c.DatabaseID, l.name):
		return none, command.Refuse(command.ReasonInvalid, "the database has no such roles")
	}
	if groups, err := x.overlay.StandingGroups(ctx, l.db); err != nil {
		return none, err
	} else if len(groups) < 2 {
		return none, command.Refuse(command.ReasonInvalid, "the database does not have both of its group roles")
	}
	if err := x.isOwn(ctx, l, e); err != nil {
		return none, err
	}
	crash.Point(crash.PrepareAdmitted)
	if err := x.makeLogin(ctx, l, c); err != nil {
		return none, err
	}
	crash.Point(crash.PrepareMade)
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return none, err
	}
	crash.Point(crash.PreparePooled)
	return ledger.Conclude(ctx, x.ledger, e, none, crash.PrepareReply)
}

// isOwn refuses a login that another operation has had to do with, for a preparation is the first that is heard of a role. The
// control plane was restored from a backup, and has given the name a second time. The older role has rights, and perhaps a
// password, that the new one must not get.
func (x *Logins) isOwn(ctx context.Context, l loginRow, e protocol.Command) error {
	if !l.exists {
		return nil
	}
	const query = "SELECT EXISTS (SELECT FROM ledger.command WHERE kind = $1 AND resource = $2 AND operation_id <> $3)"
	others, err := pg.One[bool](ctx, x.db, query, string(e.Kind), e.Resource, e.OperationID)
	if err == nil && (others || l.enabled) {
		err = command.Refuse(command.ReasonNameTaken, "the server has a role named %s that another operation has made", l.name)
	}
	return err
}

// makeLogin is one transaction: the role stands with its row, its gate and CONNECT, or nothing does. CONNECT is granted only
// when the role is made: what the owner takes back later stays taken.
func (x *Logins) makeLogin(ctx context.Context, l loginRow, c command.PrepareRole) error {
	seen, err := x.observe(ctx, l, "", "")
	if err != nil {
		return err
	}
	desired := role.Login{Present: true, MayLogIn: seen.MayLogIn, Limit: backstop(c.ConnectionLimit)}
	statements := loginPlan{loginRow: l, desired: desired}.statements(seen)
	statements = append(statements, fmt.Sprintf("UPDATE ledger.role SET connection_limit = %d WHERE name = %s AND database_id = %s",
		c.ConnectionLimit, pg.Quote(l.name), pg.Quote(l.db.ID)))
	err = x.ledger.Insist(ctx, statements...)
	switch pg.State(err) {
	case ledger.DuplicateObject, ledger.UniqueViolation:
		return command.Refuse(command.ReasonNameTaken, "the server has a role named %s that is not ours", l.name)
	}
	return err
}
