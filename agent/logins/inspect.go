package logins

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// inspectTime bounds one look, and the wait for a connection.
const inspectTime = 5 * time.Second

// InspectLogin compares a login's password on the server with a verifier, and tells whether it gets in. It changes nothing.
func (x *Logins) InspectLogin(ctx context.Context, q command.InspectLogin) (state command.LoginState, err error) {
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

// ReadOutcome tells whether a step of an operation about a role is done, and how the role stands. It has the database's lock, so
// no command is in the middle of either. It changes nothing.
func (x *Logins) ReadOutcome(ctx context.Context, q command.ReadOutcome) (outcome command.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(string(q.DatabaseID)))
	if err != nil {
		return outcome, err
	}
	defer release()
	const query = `SELECT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2 AND resource = $3
		AND result IS NOT NULL)`
	outcome.Done, err = pg.One[bool](ctx, x.db, query, string(q.OperationID), q.Step, q.Resource())
	if err != nil {
		return outcome, err
	}
	l, err := x.anyLogin(ctx, string(q.DatabaseID), q.Username)
	if command.RefusedFor(err, command.ReasonNotFound) {
		return outcome, nil // nothing is left of its database
	}
	if err == nil {
		outcome.Role, err = x.found(ctx, l, q)
	}
	return outcome, err
}

// found looks at a role as one that was admitted with a verifier and the rights of a profile.
func (x *Logins) found(ctx context.Context, l loginRow, q command.ReadOutcome) (f role.Found, err error) {
	seen, err := x.observeAs(ctx, l, q.Verifier, q.AccessProfile)
	if err != nil || !seen.Present {
		return f, err
	}
	const query = "SELECT EXISTS (SELECT FROM pooler.gate WHERE login = $1 AND database = $2 AND open)"
	gate, err := pg.One[bool](ctx, x.db, query, l.name, l.db.Name)
	letsIn := l.enabled && (!l.db.Open || gate && (seen.MayLogIn || l.db.Shut))
	return role.Found{
		Present: true, Open: seen.MayLogIn || gate || l.enabled,
		Altered: seen.Altered(backstop(q.ConnectionLimit)), Lacks: seen.Lacks(letsIn),
	}, err
}

// admitted reports whether the gate is open and the password valid.
func (x *Logins) admitted(ctx context.Context, l loginRow) (bool, error) {
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
