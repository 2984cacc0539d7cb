package relocate

import (
	"context"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// serveHere lets customers into a database that has moved here. One transaction lets them in and completes the operation.
func (x *Relocator) serveHere(ctx context.Context, e protocol.Command, c command.Serve) (none command.None, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err == nil {
		err = x.ledger.Moves(ctx, e.OperationID, d)
	}
	if err == nil {
		err = x.refuseUntaken(ctx, e.OperationID)
	}
	if err != nil {
		return none, err
	}
	crash.Point(crash.ServeAdmitted)
	var statements []string
	for _, r := range c.Roles {
		admitting, err := x.Admitting(ctx, d, r, c.Open)
		if err != nil {
			return none, err
		}
		statements = append(statements, admitting...)
	}
	in, err := x.inForce(ctx, d, c.Passwords)
	if err != nil {
		return none, err
	}
	statements = append(statements, in...)
	if err := x.databases.SendOnNoMore(ctx, d); err != nil {
		return none, err
	}
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return none, err
	}
	if c.Open {
		statements = append(statements, databases.GateStatement(d, true))
	}
	statements = append(statements, beginsFilled(d, e.OperationID)...)
	forget := "DELETE FROM ledger.following WHERE operation_id = " + pg.Quote(e.OperationID)
	statements = append(statements, forget, ledger.Outcome(e, none))
	if c.Open {
		err = x.databases.LetIn(ctx, d, statements...)
	} else {
		err = x.ledger.Insist(ctx, statements...)
	}
	if err != nil {
		return none, err
	}
	x.Replaced(c.DatabaseID)
	crash.Point(crash.ServeReply)
	return none, nil
}

// inForce gives the logins that the server has of a database the passwords that are in force.
func (x *Relocator) inForce(ctx context.Context, d ledger.Database, list []command.Password) (statements []string, err error) {
	const query = "SELECT name FROM ledger.role WHERE database_id = $1 AND part IN (" + ledger.LoginParts + ")"
	has, err := pg.Column(ctx, x.db, query, d.ID)
	for _, p := range list {
		if slices.Contains(has, p.Username) {
			statements = append(statements, "ALTER ROLE "+pg.Ident(p.Username)+" PASSWORD "+pg.Quote(p.Verifier),
				fmt.Sprintf("UPDATE ledger.role SET credential_generation = %d WHERE database_id = %s AND name = %s",
					p.Generation, pg.Quote(d.ID), pg.Quote(p.Username)))
		}
	}
	return statements, err
}

// refuseUntaken refuses an operation that follows a database, and does not have all of it.
func (x *Relocator) refuseUntaken(ctx context.Context, operation string) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.following WHERE operation_id = $1)
		AND NOT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2 AND result IS NOT NULL)`
	untaken, err := pg.One[bool](ctx, x.db, query, operation, command.Step(command.Take{}))
	if err == nil && untaken {
		err = command.Refuse(command.ReasonFailed, "changes are still missing")
	}
	return err
}
