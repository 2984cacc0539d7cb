package databases

import (
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// setAccess opens or closes a database for customers. With Disconnect it first ends every connection, in the order that lets
// nobody slip through: gate, pooler clients (including those in the middle of a log-in), logins, sessions. A clone without its
// data stays closed: its switch opens it.
func (x *Databases) setAccess(ctx context.Context, e protocol.Command, c command.SetAccess) (none command.None, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err == nil && c.Open && !d.Open {
		err = x.RefuseUnfilled(ctx, d)
	}
	if err != nil {
		return none, err
	}
	crash.Point(crash.AccessAdmitted)
	if c.Disconnect {
		err = x.Expel(ctx, d)
	} else if !c.Open {
		err = x.shut(ctx, d)
	}
	if err != nil {
		return none, err
	}
	if !c.Open {
		return ledger.Conclude(ctx, x.ledger, e, none, crash.AccessReply)
	}
	if err := x.LetIn(ctx, d, GateStatement(d, true), ledger.Outcome(e, none)); err != nil {
		return none, err
	}
	crash.Point(crash.AccessReply)
	return none, nil
}

// RefuseUnfilled refuses a database that an operation has made closed, and has put no data into yet.
func (x *Databases) RefuseUnfilled(ctx context.Context, d ledger.Database) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2)
		AND NOT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step IN ($3, $4) AND result IS NOT NULL)`
	made, filled := command.Step(command.EnsureDatabase{Closed: true}), command.Step(command.Switch{})
	unfilled, err := pg.One[bool](ctx, x.db, query, d.MadeBy, made, filled, command.Step(command.Serve{}))
	if err == nil && unfilled {
		err = command.Refuse(command.ReasonFailed, "the data of the database is yet to come; the operation that brings it opens it")
	}
	return err
}

// GateStatement opens or closes a database in the ledger and the gates of its logins: either the enabled ones that are still
// the roles that we made, or all.
func GateStatement(d ledger.Database, open bool) string {
	if !open {
		return "UPDATE ledger.database SET open = false WHERE id = " + pg.Quote(d.ID) +
			";UPDATE pooler.gate SET open = false WHERE database = " + pg.Quote(d.Name)
	}
	return "UPDATE ledger.database SET open = true WHERE id = " + pg.Quote(d.ID) +
		";UPDATE pooler.gate g SET open = true FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name" +
		" WHERE g.login = p.name AND p.enabled AND p.database_id = " + pg.Quote(d.ID)
}

// shut lets no new customer in.
func (x *Databases) shut(ctx context.Context, d ledger.Database) error {
	if err := pg.Atomically(ctx, x.db, GateStatement(d, false)); err != nil {
		return err
	}
	crash.Point(crash.AccessGateClosed)
	return x.changeLogins(ctx, d, "NOLOGIN")
}

// Expel lets no new customer in and every present one out. Once it returns, no client and no session is left, and a client
// that began its log-in before cannot finish it.
func (x *Databases) Expel(ctx context.Context, d ledger.Database) error {
	if err := pg.Atomically(ctx, x.db, GateStatement(d, false)); err != nil {
		return err
	}
	crash.Point(crash.AccessGateClosed)
	return x.Empty(ctx, d)
}

// Empty lets every customer out of a database that lets none in, and waits for those in the middle of their log-in.
func (x *Databases) Empty(ctx context.Context, d ledger.Database) error {
	return x.emptyOf(ctx, d, pooler.OfDatabase(d.Name))
}

// EmptyAtOnce waits for nobody in the middle of a log-in at the pooler, where who knows a login's name can stand for 5 s. Once
// it returns, they may still log in to the pooler, but no client is left that was ever in the database.
func (x *Databases) EmptyAtOnce(ctx context.Context, d ledger.Database) error {
	in := pooler.LoggedIn(d.Name)
	if err := x.emptyOf(ctx, d, in); err != nil {
		return err
	}
	return x.evict(ctx, d, in) // who has come in before PostgreSQL let none of the logins in
}

// evict ends clients at the pooler, unless these are sent on to another server, which has the database still, or has it now.
func (x *Databases) evict(ctx context.Context, d ledger.Database, who pooler.Who) error {
	sentOn, err := pg.One[bool](ctx, x.db, "SELECT EXISTS (SELECT FROM pooler.forward WHERE database = $1)", d.Name)
	if err != nil || sentOn {
		return err
	}
	return x.pooler.Evict(ctx, who)
}

func (x *Databases) emptyOf(ctx context.Context, d ledger.Database, who pooler.Who) error {
	if err := x.evict(ctx, d, who); err != nil {
		return err
	}
	crash.Point(crash.AccessEvicted)
	if err := x.changeLogins(ctx, d, "NOLOGIN"); err != nil {
		return err
	}
	crash.Point(crash.AccessLoginsOff)
	if err := x.ledger.EndSessions(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.AccessEnded)
	return nil
}

// LetIn opens a database to its enabled logins, in one transaction with further statements. Of one that is shut the logins stay
// as they are.
func (x *Databases) LetIn(ctx context.Context, d ledger.Database, more ...string) error {
	if err := x.SendOnNoMore(ctx, d); err != nil {
		return err
	}
	if d.Shut {
		return pg.Atomically(ctx, x.db, more...)
	}
	return x.changeLogins(ctx, d, "LOGIN", more...)
}

// SendOnNoMore has PgBouncer lead to a database that comes back from another server, to which who came for it here was sent on
// until now.
func (x *Databases) SendOnNoMore(ctx context.Context, d ledger.Database) error {
	done, err := x.db.ExecContext(ctx, "DELETE FROM pooler.forward WHERE database = $1", d.Name)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return x.pooler.Sync(ctx, x.ledger.PoolerState)
}

// changeLogins sets LOGIN for every enabled login of a database that is still the one we made, or NOLOGIN for every login, in
// one transaction with further statements. A customer's own uncommitted ALTER ROLE would block it forever, so blocking sessions
// are ended.
func (x *Databases) changeLogins(ctx context.Context, d ledger.Database, word string, more ...string) error {
	names, err := x.LoginsOf(ctx, d.ID, word == "NOLOGIN")
	if err != nil {
		return err
	}
	statements := make([]string, 0, len(names)+len(more))
	for _, name := range names {
		statements = append(statements, "ALTER ROLE "+pg.Ident(name)+" "+word)
	}
	statements = append(statements, more...)
	return x.ledger.PushThrough(ctx, func() error { return x.ledger.EndVisible(ctx, d) }, statements...)
}

// LoginsOf returns the logins of a database that exist and are ours: the enabled ones, or all.
func (x *Databases) LoginsOf(ctx context.Context, id string, all bool) ([]string, error) {
	const query = `SELECT r.rolname FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.database_id = $1 AND p.part IN (` + ledger.LoginParts + `) AND (p.enabled OR $2) ORDER BY 1`
	return pg.Column(ctx, x.db, query, id, all)
}
