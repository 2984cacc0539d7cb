package executor

import (
	"context"
	"encoding/json"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/role"
)

// openLogin gives a prepared role its grants and its password, lets it log in, and proves that.
func (x *Executor) openLogin(ctx context.Context, o loginOrder) (json.RawMessage, error) {
	l, err := x.login(ctx, o.DatabaseID, o.Username)
	if err != nil {
		return nil, err
	}
	if err := x.mayOpen(ctx, l, o); err != nil {
		return nil, err
	}
	crash.Point(crash.OpenAdmitted)
	if err := x.open(ctx, l, o); err != nil {
		return nil, err
	}
	crash.Point(crash.OpenOpened)
	connect, err := x.proveAccepted(ctx, l, o.fresh)
	switch {
	case err != nil:
		return nil, err
	case !connect:
		return nil, connectRequired(l)
	}
	crash.Point(crash.OpenProved)
	if err := atomically(ctx, x.db, outcome(o.command, noResult)); err != nil {
		return nil, err
	}
	crash.Point(crash.OpenReply)
	return noResult, nil
}

func (x *Executor) mayOpen(ctx context.Context, l loginRow, o loginOrder) error {
	switch {
	case !l.standing:
		return refuse(protocol.ReasonNotFound, "the server has no role %s", l.name)
	case !l.open:
		return errDatabaseClosed
	}
	if connect, err := x.mayConnect(ctx, l); err != nil {
		return err
	} else if !connect {
		return connectRequired(l)
	}
	lapsed, err := x.lapsed(ctx, o)
	if err == nil && lapsed {
		err = refuse(protocol.ReasonFailed, "the validity of the login's password has ended")
	}
	return err
}

func (x *Executor) mayConnect(ctx context.Context, l loginRow) (may bool, err error) {
	const query = "SELECT has_database_privilege($1::oid, $2::oid, 'CONNECT')"
	return may, x.db.QueryRowContext(ctx, query, l.oid, l.db.OID).Scan(&may)
}

var errDatabaseClosed = refuse(protocol.ReasonDatabaseClosed, "the database is stopped")

func connectRequired(l loginRow) error {
	return refuse(protocol.ReasonConnectRequired, "the owner has withdrawn CONNECT from %s", l.name)
}

// open is one transaction, the gate with it.
func (x *Executor) open(ctx context.Context, l loginRow, o loginOrder) error {
	group := l.group(role.AccessProfile(o.AccessProfile))
	seen, err := x.observe(ctx, l, o.Verifier, group)
	if err != nil {
		return err
	}
	p := loginPlan{loginRow: l, verifier: o.Verifier, group: group, desired: role.Login{
		Present: true, MayLogIn: true, Password: role.OurPassword, ValidUntil: o.ValidUntil, InGroup: group != "",
	}}
	return x.insist(ctx, append(p.statements(seen), l.rowStatement("enabled = true"), l.gateStatement(true))...)
}
