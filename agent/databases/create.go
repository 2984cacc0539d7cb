package databases

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/command"
)

// ensureDatabase creates a database, or continues creating it. If it exists already, it is opened in the pooler and proven again.
// One that is to stay closed is opened by the switch that puts its data in, and never here: its row says so from the beginning.
func (x *Databases) ensureDatabase(
	ctx context.Context, e protocol.Command, c command.EnsureDatabase,
) (none command.None, err error) {
	plan := planOf(e, c)
	known, found, err := x.ledger.Database(ctx, plan.id)
	switch {
	case err != nil:
		return none, err
	case found && known.Isolated != "":
		return none, command.Refuse(command.ReasonConflict, "the database is out of service")
	case found && (known.Name != plan.names.Owner || known.RoleModel != string(plan.model)):
		return none, command.Refuse(command.ReasonConflict, "the database stands under another name or role model")
	case found && !known.Named() && known.MadeBy != e.OperationID:
		return none, command.Refuse(command.ReasonConflict, "another operation is making the database")
	case found && c.Closed && (known.Open || known.MadeBy != e.OperationID):
		return none, command.Refuse(command.ReasonConflict, "the database is not one that this operation makes and has yet to fill")
	case found:
		plan.open = known.Open
	}
	crash.Point(crash.CreateAdmitted)
	if !found {
		if err := x.begin(ctx, plan); err != nil {
			return none, err
		}
	}
	if err := x.makeAndPool(ctx, plan, known.Named()); err != nil {
		return none, err
	}
	if !known.Shut && !c.Closed { // otherwise nobody gets in, whatever the password
		if err := x.prove(ctx, plan); err != nil {
			return none, err
		}
	}
	return ledger.Conclude(ctx, x.ledger, e, none, crash.CreateReply, ledger.FlushLater)
}

// begin creates the database's row and its holder, by which everything created later is recognised, and closed gates.
func (x *Databases) begin(ctx context.Context, p plan) error {
	const query = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1) OR EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`
	taken, err := pg.One[bool](ctx, x.db, query, p.names.Owner)
	switch {
	case err != nil:
		return err
	case taken:
		return nameTaken(p)
	}
	return orNameTaken(pg.Atomically(ctx, x.db, p.beginStatements()...), p)
}

// makeAndPool creates the database while, concurrently, its logins are created and PgBouncer loads its entries: the gates are
// closed until it has its name.
func (x *Databases) makeAndPool(ctx context.Context, p plan, made bool) error {
	var logins, pooled errgroup.Group
	pooled.Go(func() error { return x.pooler.Sync(ctx, x.ledger.PoolerState) })
	if !made {
		logins.Go(func() error { return x.makeLogins(ctx, p) })
		if err := x.makeDatabase(ctx, p, logins.Wait); err != nil {
			return errors.Join(err, pooled.Wait())
		}
	}
	crash.Point(crash.CreateRenamed)
	err := pooled.Wait()
	crash.Point(crash.CreatePooled)
	return err
}

// makeLogins creates the roles of a database except its holder, and their rows, in one transaction: there are all or none.
func (x *Databases) makeLogins(ctx context.Context, p plan) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.role WHERE database_id = $1 AND part = 'owner')`
	made, err := pg.One[bool](ctx, x.db, query, p.id)
	if err == nil && !made {
		err = orNameTaken(pg.Atomically(ctx, x.db, p.loginStatements()...), p)
	}
	if err == nil {
		crash.Point(crash.CreateLogins)
	}
	return err
}

// orNameTaken turns an error that means so into the refusal.
func orNameTaken(err error, p plan) error {
	switch pg.State(err) {
	case ledger.DuplicateObject, ledger.UniqueViolation, ledger.DuplicateDatabase:
		return nameTaken(p)
	}
	return err
}

func nameTaken(p plan) error {
	return command.Refuse(command.ReasonNameTaken, "the server has a database or login named %s that is not ours to use",
		p.names.Owner)
}

// makeDatabase creates the database under its temporary name, hardens it there once the logins stand, and renames it in the
// transaction that writes the ledger's row. Customers cannot reach it before that.
func (x *Databases) makeDatabase(ctx context.Context, p plan, logins func() error) error {
	err := x.createTemporary(ctx, p)
	if failed := logins(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	crash.Point(crash.CreateDatabase)
	rights := func() error { return x.server.Once(ctx, p.temporary, p.rightsStatements()...) }
	if err := x.ledger.Inside.Run(ctx, rights); err != nil {
		return err
	}
	crash.Point(crash.CreateRights)
	empty := func() error { return x.awaitEmpty(ctx, p.temporary) }
	if err := empty(); err != nil {
		return err
	}
	err = x.ledger.PushThrough(ctx, empty, p.renameStatements()...)
	if pg.State(err) == ledger.DuplicateDatabase {
		return nameTaken(p)
	}
	return err
}

// createTemporary creates the database under its temporary name, or finds it.
func (x *Databases) createTemporary(ctx context.Context, p plan) error {
	err := x.ledger.Build(ctx, "CREATE DATABASE "+pg.Ident(p.temporary)+" OWNER "+pg.Ident(p.names.Holder)+
		" TEMPLATE template0 ENCODING 'UTF8'")
	if pg.State(err) == ledger.DuplicateDatabase || pg.State(err) == ledger.UniqueViolation {
		return x.recognize(ctx, p)
	}
	return err
}

// recognize decides whether a database with our temporary name is ours: its owner must be the holder that we made.
func (x *Databases) recognize(ctx context.Context, p plan) error {
	const query = `SELECT EXISTS (SELECT FROM pg_database d JOIN ledger.role r ON r.oid = d.datdba
		WHERE d.datname = $1 AND r.database_id = $2 AND r.part = 'holder')`
	ours, err := pg.One[bool](ctx, x.db, query, p.temporary, p.id)
	if err == nil && !ours {
		err = command.Refuse(command.ReasonNameTaken, "the server has a database %s that is not ours", p.temporary)
	}
	return err
}

// prove logs the owner in through the pooler.
func (x *Databases) prove(ctx context.Context, p plan) error {
	err := x.pooler.Prove(ctx, p.names.Owner, p.names.Owner, p.password)
	if errors.Is(err, pooler.ErrRefused) {
		return &command.Refusal{Reason: command.ReasonFailed, Message: "the owner could not log in through the pooler", Cause: err}
	}
	if err == nil {
		crash.Point(crash.CreateProved)
	}
	return err
}

// awaitEmpty waits until the agent's own closing connections to a database are gone, and terminates all others: a rename waits
// in steps of 100 ms and then fails.
func (x *Databases) awaitEmpty(ctx context.Context, name string) error {
	const query = `SELECT count(CASE WHEN a.usename = '` + setup.AgentLogin + `' THEN true ELSE pg_terminate_backend(a.pid) END)
		FROM pg_stat_activity a WHERE a.backend_type = 'client backend' AND a.datname = $1`
	return x.ledger.Until(ctx, "sessions are still open", func() (int, error) {
		return pg.One[int](ctx, x.db, query, name)
	})
}
