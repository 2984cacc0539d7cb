package executor

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// inspectTime bounds one look, and the wait for a connection.
const inspectTime = 5 * time.Second

// InspectLogin compares a login's password on the server with a verifier, and tells whether it gets in. It changes nothing.
func (x *Executor) InspectLogin(ctx context.Context, q protocol.LoginQuestion) (protocol.LoginAnswer, error) {
	_, err := id.Parse[id.DatabaseID](q.DatabaseID)
	if err != nil || !usernamePattern.MatchString(q.Username) || !verifierPattern.MatchString(q.Verifier) {
		return protocol.LoginAnswer{}, refuse(protocol.ReasonInvalid, "databaseId, username or verifier cannot be")
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	l, err := x.login(ctx, q.DatabaseID, q.Username)
	if err != nil {
		return protocol.LoginAnswer{}, err
	}
	seen, err := x.observe(ctx, l, q.Verifier, "")
	if err != nil {
		return protocol.LoginAnswer{}, err
	}
	admitted, err := x.admitted(ctx, l)
	return protocol.LoginAnswer{Condition: condition(seen, admitted)}, err
}

// admitted reports whether the gate is open and the password valid.
func (x *Executor) admitted(ctx context.Context, l loginRow) (admitted bool, err error) {
	const query = `SELECT EXISTS (SELECT FROM pooler.gate g JOIN pg_roles r ON r.rolname = g.login
		WHERE g.login = $1 AND g.database = $2 AND g.open AND coalesce(r.rolvaliduntil > clock_timestamp(), true))`
	return admitted, x.db.QueryRowContext(ctx, query, l.name, l.db.Name).Scan(&admitted)
}

func condition(seen role.Login, admitted bool) string {
	switch {
	case !seen.Present:
		return protocol.ConditionAbsent
	case seen.Password != role.OurPassword:
		return protocol.ConditionDrifted
	case !seen.MayLogIn || !admitted:
		return protocol.ConditionShut
	}
	return protocol.ConditionInForce
}
