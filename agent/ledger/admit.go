package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// verdict is the ledger's answer to a command.
type verdict struct {
	goOn   bool            // carry it out, or continue it
	result json.RawMessage // of a command that is already done
}

var verdictRefusals = map[string]*command.Refusal{
	"fenced":   command.Refuse(command.ReasonFenced, "a worker with a newer lease has taken over this operation"),
	"closed":   command.Refuse(command.ReasonClosed, "the operation is closed"),
	"conflict": command.Refuse(command.ReasonConflict, "the same command came before with another payload"),
	"stale":    command.Refuse(command.ReasonStale, "a newer generation was admitted"),
}

// admit stores the intent of a command, or returns what became of it.
func (l *Ledger) admit(ctx context.Context, c protocol.Command) (verdict, error) {
	query := "SELECT verdict, result FROM ledger.admit($1, $2, $3, $4, $5, $6, $7, $8)"
	if l.has(c.Kind, AdmittedLate) {
		query += ", " + flushLaterCall
	}
	var word string
	var result sql.NullString
	err := l.db.QueryRowContext(ctx, query, c.OperationID, c.Epoch, c.Kind == (command.Close{}).About().Kind, c.Step, c.Resource,
		c.Generation, string(c.Kind), c.PayloadHash).Scan(&word, &result)
	if err != nil {
		return verdict{}, fmt.Errorf("ledger: %w", err)
	}
	switch word {
	case "go":
		return verdict{goOn: true}, nil
	case "done":
		return verdict{result: json.RawMessage(result.String)}, nil
	}
	if no, known := verdictRefusals[word]; known {
		return verdict{}, no
	}
	return verdict{}, fmt.Errorf("ledger: unknown verdict %q", word)
}

// Outcome is the statement that stores the result of a command. It fails if PostgreSQL has crashed since the command began,
// because some of its work may be lost.
func Outcome(c protocol.Command, result any) string {
	text, _ := json.Marshal(result) // a result has nothing that cannot be written
	return fmt.Sprintf("SELECT ledger.conclude(%s, %s, %s, %d, %s, %s)", pg.Quote(c.OperationID), pg.Quote(c.Step),
		pg.Quote(c.Resource), c.Generation, pg.Quote(string(c.Kind)), pg.Quote(string(text)))
}

// Conclude stores the result of a command after further statements, and passes the crash point behind that.
func Conclude[R any](
	ctx context.Context, l *Ledger, e protocol.Command, result R, reply string, before ...string,
) (R, error) {
	err := pg.Atomically(ctx, l.db, append(before, Outcome(e, result))...)
	if err == nil {
		crash.Point(reply)
	}
	return result, err
}

// abandon ends the work on a command for now. If PostgreSQL has crashed since the command began, the error that it failed with
// means nothing.
func (l *Ledger) abandon(ctx context.Context, c protocol.Command, why error) error {
	const query = `DELETE FROM ledger.running WHERE operation_id = $1 AND step = $2 AND resource = $3 AND generation = $4`
	if AsRefusal(why).Reason == command.ReasonUnavailable {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), AbandonTime)
	defer cancel()
	done, err := l.db.ExecContext(ctx, query, c.OperationID, c.Step, c.Resource, c.Generation)
	var running int64
	if err == nil {
		running, err = done.RowsAffected()
	}
	if err != nil || running == 0 {
		return errCrashed(errors.Join(why, err))
	}
	return why
}

// AbandonTime bounds one statement.
const AbandonTime = 10 * time.Second

func errCrashed(cause error) *command.Refusal {
	return Unavailable("PostgreSQL has crashed meanwhile; send the command again", cause)
}

// Database is a database of the ledger.
type Database struct {
	ID, Name, RoleModel, MadeBy string
	Account                     string // empty until the control plane has said it
	ConnectionCap               int
	OID                         uint32 // 0 until it has its name
	Open                        bool   // customers may log in, as far as the last SetAccess goes
	Shut                        bool   // the service keeps customers out all the same
	Isolated                    string // the name that it has while it is out of service; empty: it is in service
}

// DatabaseColumns are read into Columns.
const DatabaseColumns = "d.id, d.name, d.role_model, d.made_by, d.account_id, d.connection_cap, coalesce(d.oid, 0), d.open," +
	" EXISTS (SELECT FROM pooler.shut s WHERE s.database = d.name), coalesce(d.isolated, '')"

// Columns are what DatabaseColumns are read into.
func (d *Database) Columns() []any {
	return []any{&d.ID, &d.Name, &d.RoleModel, &d.MadeBy, &d.Account, &d.ConnectionCap, &d.OID, &d.Open, &d.Shut, &d.Isolated}
}

// Names are those of its roles.
func (d Database) Names() database.Names { return database.RoleNames(id.DatabaseID(d.ID), d.Name) }

// Named reports whether the database has had its final name.
func (d Database) Named() bool { return d.OID != 0 }

// InService reports whether the database has its final name now.
func (d Database) InService() bool { return d.Named() && d.Isolated == "" }

// Serving is the condition that a row d of ledger.database is InService.
const Serving = "d.oid IS NOT NULL AND d.isolated IS NULL"

// Database reads a database of the ledger; false if there is none.
func (l *Ledger) Database(ctx context.Context, db string) (Database, bool, error) {
	const query = "SELECT " + DatabaseColumns + " FROM ledger.database d WHERE d.id = $1"
	var d Database
	err := l.db.QueryRowContext(ctx, query, db).Scan(d.Columns()...)
	if err == sql.ErrNoRows {
		return d, false, nil
	}
	return d, err == nil, err
}

// InService is Database for what needs one that is in service, and refuses any other.
func (l *Ledger) InService(ctx context.Context, db string) (Database, error) {
	d, err := l.Known(ctx, db)
	if err == nil {
		err = d.Serves()
	}
	return d, err
}

// Known is Database for what needs one, in service or not. DATABASE_NOT_FOUND.
func (l *Ledger) Known(ctx context.Context, db string) (Database, error) {
	d, found, err := l.Database(ctx, db)
	if err == nil && !found {
		err = NoDatabase(db)
	}
	return d, err
}

// Serves refuses a database that is not InService. ReasonNotFound: it has no name yet. ReasonIsolated.
func (d Database) Serves() error {
	switch {
	case !d.Named():
		return NoDatabase(d.ID)
	case d.Isolated != "":
		return command.Refuse(command.ReasonIsolated, "the database %s stands, and is out of service", d.ID)
	}
	return nil
}

// NoDatabase is the refusal of a database that is not there.
func NoDatabase(db string) error {
	return command.Refuse(command.ReasonNotFound, "the server has no database %s", db)
}

// FlushLater spares a transaction its wait for the disk; so does flushLaterCall, in a query. A crash of PostgreSQL
// or of the machine may then take the transaction back, with all that was committed after it: the log is lost from its end
// only. That is harmless, because a command that a crash fell into ends with none of its outcomes (see Outcome and abandon), and
// whoever gets it again goes on from what it finds.
//
// CREATE DATABASE waits for the disk, and so does the rename. So no database exists without the row and the holder that make it
// ours, and none is reported before its logins, rights and name are on disk. An outcome that is lost is proven again. If an
// admission is lost with its epoch, a worker that was suspended beyond its lease may have the same command admitted, which does
// the same; closing the operation, which would undo it, waits for the disk.
//
// In a command about a login, storing the outcome waits for the disk, and with it everything that the command did before. So
// nothing is reported that may still be lost.
const (
	FlushLater     = "SET LOCAL synchronous_commit = off"
	flushLaterCall = "set_config('synchronous_commit', 'off', true)"
)

// LoginParts are the parts of roles that customers log in as.
const LoginParts = "'owner', 'runtime', 'readonly', 'additional'"
