package executor

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

// ensureDatabase makes a database, or goes on making it. Where it stands already, it is opened in the pooler and proven again.
func (x *Executor) ensureDatabase(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
	plan, err := readPlan(c)
	if err != nil {
		return nil, err
	}
	known, found, err := x.database(ctx, plan.id)
	switch {
	case err != nil:
		return nil, err
	case found && (known.Name != plan.names.Owner || known.RoleModel != string(plan.model)):
		return nil, refuse(protocol.ReasonConflict, "the database stands under another name or role model")
	case found && !known.named() && known.MadeBy != c.OperationID:
		return nil, refuse(protocol.ReasonConflict, "another operation is making the database")
	}
	crash.Point(crash.CreateAdmitted)
	if !found {
		if err := x.makeLogins(ctx, plan); err != nil {
			return nil, err
		}
	}
	crash.Point(crash.CreateLogins)
	if !known.named() {
		if err := x.makeDatabase(ctx, plan); err != nil {
			return nil, err
		}
	}
	crash.Point(crash.CreateRenamed)
	return noResult, x.openInPooler(ctx, c, plan)
}

// makeLogins creates all roles of a database and their rows, gates closed. It is one transaction: there are all or none.
func (x *Executor) makeLogins(ctx context.Context, p plan) error {
	const query = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	var taken bool
	if err := x.db.QueryRowContext(ctx, query, p.names.Owner).Scan(&taken); err != nil {
		return err
	}
	if taken {
		return nameTaken(p)
	}
	err := atomically(ctx, x.db, p.loginStatements()...)
	switch sqlState(err) {
	case duplicateObject, uniqueViolation:
		return nameTaken(p)
	}
	return err
}

func nameTaken(p plan) error {
	return refuse(protocol.ReasonNameTaken, "the server has a database or login named %s that is not ours to use", p.names.Owner)
}

// makeDatabase creates the database under its temporary name, hardens it there, and gives it its name together with the
// ledger's row. Customers can reach it at no moment before.
func (x *Executor) makeDatabase(ctx context.Context, p plan) error {
	_, err := x.db.ExecContext(ctx, "CREATE DATABASE "+ident(p.temporary)+" OWNER "+ident(p.names.Holder)+" TEMPLATE template0")
	if sqlState(err) == duplicateDatabase || sqlState(err) == uniqueViolation {
		err = x.recognize(ctx, p)
	}
	if err != nil {
		return err
	}
	crash.Point(crash.CreateDatabase)
	if err := x.making.run(ctx, func() error { return x.server.once(ctx, p.temporary, p.rightsStatements()...) }); err != nil {
		return err
	}
	crash.Point(crash.CreateRights)
	if err := x.awaitEmpty(ctx, p.temporary); err != nil {
		return err
	}
	err = atomically(ctx, x.db, p.renameStatements()...)
	if sqlState(err) == duplicateDatabase {
		return nameTaken(p)
	}
	return err
}

// recognize decides whether a database of our temporary name is ours: it belongs to the holder that we made.
func (x *Executor) recognize(ctx context.Context, p plan) error {
	const query = `SELECT EXISTS (SELECT FROM pg_database d JOIN ledger.role r ON r.oid = d.datdba
		WHERE d.datname = $1 AND r.database_id = $2 AND r.part = 'holder')`
	var ours bool
	if err := x.db.QueryRowContext(ctx, query, p.temporary, p.id).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return refuse(protocol.ReasonNameTaken, "the server has a database %s that is not ours", p.temporary)
	}
	return nil
}

// openInPooler makes PgBouncer take the database up and proves that its owner can log in.
func (x *Executor) openInPooler(ctx context.Context, c protocol.Command, p plan) error {
	if err := x.syncPooler(ctx); err != nil {
		return err
	}
	crash.Point(crash.CreatePooled)
	err := x.pooler.Prove(ctx, p.names.Owner, p.names.Owner, c.Secrets[p.names.Owner])
	if errors.Is(err, pooler.ErrRefused) {
		return &Refusal{protocol.ReasonFailed, "the owner could not log in through the pooler", err}
	}
	if err != nil {
		return err
	}
	crash.Point(crash.CreateProved)
	if err := atomically(ctx, x.db, outcome(c, noResult)); err != nil {
		return err
	}
	crash.Point(crash.CreateReply)
	return nil
}
