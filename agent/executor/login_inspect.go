package executor

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// inspectTime bounds one look, and the wait for a connection.
const inspectTime = 5 * time.Second

// InspectLogin compares a login's password on the server with a verifier, and tells whether it gets in. It changes nothing.
func (x *Executor) InspectLogin(ctx context.Context, q command.InspectLogin) (state command.LoginState, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	l, err := x.login(ctx, string(q.DatabaseID), q.Username)
	if err != nil {
		return state, err
	}
	seen, err := x.observe(ctx, l, q.Verifier, "")
	if err != nil {
		return state, err
	}
	admitted, err := x.admitted(ctx, l)
	return command.LoginState{Condition: l.condition(seen, admitted)}, err
}

// ReadOutcome tells whether a step of an operation about a login is done. It changes nothing.
func (x *Executor) ReadOutcome(ctx context.Context, q command.ReadOutcome) (outcome command.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	const query = `SELECT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2 AND resource = $3
		AND result IS NOT NULL)`
	outcome.Done, err = pg.One[bool](ctx, x.db, query, string(q.OperationID), q.Step, q.Resource())
	return outcome, err
}

// admitted reports whether the gate is open and the password valid.
func (x *Executor) admitted(ctx context.Context, l loginRow) (bool, error) {
	const query = `SELECT EXISTS (SELECT FROM pooler.gate g JOIN pg_roles r ON r.rolname = g.login
		WHERE g.login = $1 AND g.database = $2 AND g.open AND coalesce(r.rolvaliduntil > clock_timestamp(), true))`
	return pg.One[bool](ctx, x.db, query, l.name, l.db.Name)
}

// condition is the login's own: a database that the service keeps customers out of has made it NOLOGIN, and gives that back.
func (l loginRow) condition(seen role.Login, admitted bool) command.LoginCondition {
	switch {
	case !seen.Present:
		return command.LoginAbsent
	case seen.Password != role.OurPassword:
		return command.LoginDrifted
	case !seen.MayLogIn && !l.db.Shut || !l.enabled || !admitted:
		return command.LoginShut
	}
	return command.LoginInForce
}
