package executor

import (
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// admitRole gives a prepared role its grants and its password, lets it log in, and proves that. In a database that is shut it may
// log in from when that is lifted.
func (x *Executor) admitRole(ctx context.Context, e protocol.Command, c command.AdmitRole) (none command.None, err error) {
	l, err := x.login(ctx, string(c.DatabaseID), c.Username)
	if err != nil {
		return none, err
	}
	if err := x.mayOpen(ctx, l, c); err != nil {
		return none, err
	}
	crash.Point(crash.OpenAdmitted)
	if err := x.open(ctx, l, c); err != nil {
		return none, err
	}
	crash.Point(crash.OpenOpened)
	if l.db.Shut {
		return conclude(ctx, x, e, none, crash.OpenReply)
	}
	connect, err := x.proveAccepted(ctx, l, c.Password)
	switch {
	case err != nil:
		return none, err
	case !connect:
		return none, connectRequired(l)
	}
	crash.Point(crash.OpenProved)
	return conclude(ctx, x, e, none, crash.OpenReply)
}

func (x *Executor) mayOpen(ctx context.Context, l loginRow, c command.AdmitRole) error {
	switch {
	case !l.exists:
		return command.Refuse(command.ReasonNotFound, "the server has no role %s", l.name)
	case !l.db.Open:
		return errDatabaseClosed
	}
	if connect, err := x.mayConnect(ctx, l); err != nil {
		return err
	} else if !connect {
		return connectRequired(l)
	}
	lapsed, err := x.lapsed(ctx, c.ValidUntil)
	if err == nil && lapsed {
		err = command.Refuse(command.ReasonFailed, "the validity of the login's password has ended")
	}
	return err
}

func (x *Executor) mayConnect(ctx context.Context, l loginRow) (bool, error) {
	return pg.One[bool](ctx, x.db, "SELECT has_database_privilege($1::oid, $2::oid, 'CONNECT')", l.oid, l.db.OID)
}

var errDatabaseClosed = command.Refuse(command.ReasonDatabaseClosed, "the database is stopped")

func connectRequired(l loginRow) error {
	return command.Refuse(command.ReasonConnectRequired, "the owner has withdrawn CONNECT from %s", l.name)
}

// open is one transaction, the gate with it.
func (x *Executor) open(ctx context.Context, l loginRow, c command.AdmitRole) error {
	group := l.group(c.AccessProfile)
	seen, err := x.observe(ctx, l, c.Verifier, group)
	if err != nil {
		return err
	}
	p := loginPlan{loginRow: l, verifier: c.Verifier, group: group, desired: role.Login{
		Present: true, MayLogIn: !l.db.Shut, Password: role.OurPassword, ValidUntil: c.ValidUntil, InGroup: group != "",
	}}
	return x.insist(ctx, append(p.statements(seen), l.rowStatement("enabled = true"), l.gateStatement(true))...)
}
