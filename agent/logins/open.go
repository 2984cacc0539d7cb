package logins

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// admitRole gives a prepared role its grants and its password, lets it log in, and proves that. In a database that is shut, or
// that the command knows to be stopped, it may log in from when that is over. A role that is not admitted stays shut; one that an
// admission had opened, and not proven, is shut again.
func (x *Logins) admitRole(ctx context.Context, e protocol.Command, c command.AdmitRole) (none command.None, err error) {
	l, err := x.login(ctx, string(c.DatabaseID), c.Username)
	if err != nil {
		return none, err
	}
	opened := l.exists && l.enabled // by an admission that broke off
	err = x.mayOpen(ctx, l, c)
	if err == nil {
		crash.Point(crash.OpenAdmitted)
		opened, err = true, x.openProven(ctx, l, c)
	}
	switch {
	case err != nil && opened:
		return none, cmp.Or(x.shutAgain(ctx, l), err)
	case err != nil:
		return none, err
	}
	return ledger.Conclude(ctx, x.ledger, e, none, crash.OpenReply)
}

func (x *Logins) openProven(ctx context.Context, l loginRow, c command.AdmitRole) error {
	if err := x.open(ctx, l, c); err != nil {
		return err
	}
	crash.Point(crash.OpenOpened)
	if l.db.Shut || !l.db.Open {
		return nil
	}
	connect, err := x.proveAccepted(ctx, l, c.Password)
	if err == nil && !connect {
		err = connectRequired(l)
	}
	if err == nil {
		crash.Point(crash.OpenProved)
	}
	return err
}

// shutAgain shuts a role that is not admitted, also where the time of the command is used up.
func (x *Logins) shutAgain(ctx context.Context, l loginRow) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledger.AbandonTime)
	defer cancel()
	return x.ledger.Insist(ctx, "ALTER ROLE "+pg.Ident(l.name)+" NOLOGIN", l.rowStatement("enabled = false"), l.gateStatement(false))
}

func (x *Logins) mayOpen(ctx context.Context, l loginRow, c command.AdmitRole) error {
	switch {
	case !l.exists:
		return command.Refuse(command.ReasonNotFound, "the server has no role %s", l.name)
	case !l.db.Open && !c.Stopped:
		return errDatabaseClosed
	}
	has, prove := x.mayConnect, func(context.Context) error { return nil }
	if l.model().OwnerConnects {
		has, prove = x.isGranted, x.enterOutside
		if err := x.isAsMade(ctx, l, c); err != nil {
			return err
		}
	}
	if connect, err := has(ctx, l); err != nil {
		return err
	} else if !connect {
		return connectRequired(l)
	}
	if err := prove(ctx); err != nil {
		return err
	}
	lapsed, err := x.lapsed(ctx, c.ValidUntil)
	if err == nil && lapsed {
		err = command.Refuse(command.ReasonFailed, "the validity of the login's password has ended")
	}
	return err
}

// isAsMade refuses a role that an administrator has changed since it was prepared: days may lie between the two.
func (x *Logins) isAsMade(ctx context.Context, l loginRow, c command.AdmitRole) error {
	seen, err := x.observeAs(ctx, l, c.Verifier, c.AccessProfile)
	if altered := seen.Altered(backstop(c.ConnectionLimit)); err == nil && len(altered) > 0 {
		err = command.Refuse(command.ReasonAltered, "the role %s is not as it was made: %s", l.name, role.ListTraits(altered))
	}
	return err
}

func (x *Logins) mayConnect(ctx context.Context, l loginRow) (bool, error) {
	return pg.One[bool](ctx, x.db, "SELECT has_database_privilege($1::oid, $2::oid, 'CONNECT')", l.oid, l.db.OID)
}

// isGranted reports whether CONNECT has been granted to the login itself, which is how the owner of a database with a single
// login lets it in. What everybody may, or another role that it is in, was granted without a thought of this one.
func (x *Logins) isGranted(ctx context.Context, l loginRow) (bool, error) {
	return pg.One[bool](ctx, x.db, `SELECT EXISTS (SELECT FROM pg_database d, aclexplode(d.datacl) a
		WHERE d.oid = $2 AND a.grantee = $1 AND a.privilege_type = 'CONNECT')`, l.oid, l.db.OID)
}

// enterOutside shows that customers get as far as PostgreSQL over TLS. The login itself, whose allowlist need not have the agent,
// is proven over the socket.
func (x *Logins) enterOutside(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	if err := x.pooler.EnterOutside(ctx); err != nil {
		return ledger.Unavailable("PgBouncer lets nobody in over TLS, see the agent's health; send the command again", err)
	}
	return nil
}

var errDatabaseClosed = command.Refuse(command.ReasonDatabaseClosed, "the database is stopped")

func connectRequired(l loginRow) error {
	return command.Refuse(command.ReasonConnectRequired, "the owner has to grant CONNECT to %s", l.name)
}

// open is one transaction, the gate with it. In a stopped database it makes the role one that a start lets in.
func (x *Logins) open(ctx context.Context, l loginRow, c command.AdmitRole) error {
	statements, err := x.opening(ctx, l, c, l.db.Open)
	if err != nil {
		return err
	}
	return x.ledger.Insist(ctx, statements...)
}

// opening are the statements that give a role its grants and its password, and let it log in where the database is open.
func (x *Logins) opening(ctx context.Context, l loginRow, c command.AdmitRole, open bool) ([]string, error) {
	group := l.group(c.AccessProfile)
	seen, err := x.observe(ctx, l, c.Verifier, group)
	if err != nil {
		return nil, err
	}
	p := loginPlan{loginRow: l, verifier: c.Verifier, group: group, desired: role.Login{
		Present: true, MayLogIn: open && !l.db.Shut, Password: role.OurPassword, ValidUntil: c.ValidUntil, InGroup: group != "",
	}}
	return append(p.statements(seen), l.rowStatement("enabled = true"), l.gateStatement(open)), nil
}

// Admitting are the statements that admit a role of a database that has moved here, as it was admitted where it comes from:
// nothing is proved. ReasonNotFound: the role was not prepared.
func (x *Logins) Admitting(ctx context.Context, d ledger.Database, c command.AdmitRole, open bool) ([]string, error) {
	l, err := x.login(ctx, d.ID, c.Username)
	if err == nil && !l.exists {
		err = command.Refuse(command.ReasonNotFound, "the server has no role %s", l.name)
	}
	if err != nil {
		return nil, err
	}
	return x.opening(ctx, l, c, open)
}
