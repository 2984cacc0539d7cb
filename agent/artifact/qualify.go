package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// origin is a database made to prove something of its backup.
var origin = copyPurpose{name: "qualify"}

// qualifyTime bounds a proof. A database that is all but empty takes seconds.
const qualifyTime = 10 * time.Minute

// Proof is what was found out about an extension.
type Proof struct {
	ServerVersion string
	Why           string // it is not qualified; empty: it is
}

// unqualifiedError says what does not work.
type unqualifiedError struct{ why string }

func (e *unqualifiedError) Error() string { return e.why }

// Qualify proves that databases with an extension can be restored: it installs the extension in a database of its own, uses it,
// makes a backup, and has the restored copy compared and used. No customer's data or code is there. It leaves nothing, and what a
// crash leaves is removed by the next run of the operation, by the sweep, and by ForgetProofs. After an error nothing was found
// out; a *TooLongError or one with a code stays.
func (b *Backuper) Qualify(
	ctx context.Context, op id.OperationID, name extension.Name, version string, progress Progress,
) (proof Proof, err error) {
	done, err := b.turn(ctx, op)
	if err != nil {
		return proof, err
	}
	defer done()
	remove := func(ctx context.Context) error { return b.discardProof(ctx, op) }
	if err := remove(ctx); err != nil {
		return proof, err
	}
	defer func() { err = errors.Join(err, b.cfg.cleanUp(ctx, remove)) }()
	limited, cancel := context.WithTimeoutCause(ctx, qualifyTime, &TooLongError{"the proof", qualifyTime})
	defer cancel()
	err = b.cfg.with(b.cfg.Maintenance, op, func(admin *sql.DB) error {
		if err := admin.QueryRowContext(limited, `SHOW server_version`).Scan(&proof.ServerVersion); err != nil {
			return err
		}
		return b.tryOut(limited, admin, op, name, version, progress)
	})
	if late := overlong(limited); late != nil {
		return proof, late
	}
	proof.Why, err = whyNot(err)
	return proof, err
}

// tryOut makes the database and its backup.
func (b *Backuper) tryOut(
	ctx context.Context, admin *sql.DB, op id.OperationID, name extension.Name, version string, progress Progress,
) error {
	l, err := locale(ctx, admin)
	if err != nil {
		return err
	}
	made := b.copyFor(origin, op, "", admin)
	if err := made.create(ctx, l, func(string) {}); err != nil {
		return err
	}
	u := uses[name]
	err = made.session(ctx, func(conn *pgconn.PgConn) error {
		install := `CREATE EXTENSION ` + dumpsql.QuoteIdentifier(string(name)) + ` SCHEMA ` + extension.Schema +
			` VERSION ` + dumpsql.QuoteIdentifier(version)
		if _, err := answer(ctx, conn, install+`;`+u.fill); err != nil {
			return err
		}
		return u.works(ctx, conn, "as installed")
	})
	if err != nil {
		return err
	}
	req := proofRequest(op)
	req.Database, req.Owner = made.name(), made.name()
	req.Try = func(ctx context.Context, conn *pgconn.PgConn) error { return u.works(ctx, conn, "as restored") }
	_, err = b.run(ctx, req, progress)
	return err
}

// session runs something as the login of a copy.
func (i *isolated) session(ctx context.Context, do func(*pgconn.PgConn) error) error {
	conn, err := i.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the copy is dropped in any case
	return do(conn)
}

// proofRequest is the backup of a proof, which stands in the store like that of a database with the operation's ID.
func proofRequest(op id.OperationID) Request {
	return Request{
		OperationID: op, DatabaseID: id.DatabaseID(op), Filename: backup.FilenameAt(time.Unix(0, 0)), Verify: true,
	}
}

// whyNot tells what says something about the extension from what says nothing: a limit that passed, or an error that another
// attempt may not meet.
func whyNot(err error) (why string, open error) {
	var no *unqualifiedError
	var refused *pgconn.PgError
	var known *fault.Error
	var late *TooLongError
	var statement *load.StatementError
	switch {
	case errors.As(err, &late):
		return "", err
	case errors.As(err, &statement) && inTheWay(statement.SQLState): // there is no code of a customer's that could raise it
		return "", statement
	case errors.As(err, &no):
		return no.why, nil
	case errors.As(err, &known) && known.Code == fault.BackupNotVerified:
		return known.Message, nil
	case errors.As(err, &refused) && !load.Transient(refused.Code) && !inTheWay(refused.Code):
		return fmt.Sprintf("%s (SQLSTATE %s)", refused.Message, refused.Code), nil
	}
	return "", err
}

// inTheWay classes: the log-in, conflicts with others, objects in use.
func inTheWay(sqlState string) bool {
	return slices.Contains([]string{"28", "40", "55"}, sqlState[:min(2, len(sqlState))])
}

// DiscardProof removes everything that a proof has made. It must not be running.
func (b *Backuper) DiscardProof(ctx context.Context, op id.OperationID) error {
	done, err := b.turn(ctx, op)
	if err != nil {
		return err
	}
	defer done()
	return b.discardProof(ctx, op)
}

func (b *Backuper) discardProof(ctx context.Context, op id.OperationID) error {
	return errors.Join(b.discard(ctx, proofRequest(op)), b.cfg.with(b.cfg.Maintenance, op, func(admin *sql.DB) error {
		return b.copyFor(origin, op, "", admin).drop(ctx, func(string) {})
	}))
}

// ForgetProofs removes the files of a predecessor's proofs. A starting agent calls it after EndPredecessor.
func (b *Backuper) ForgetProofs(ctx context.Context) error {
	return b.cfg.with(b.cfg.Maintenance, "", func(admin *sql.DB) error {
		operations, err := column(ctx, admin, "proofs", `SELECT operation_id FROM ledger.job WHERE kind = 'extension.qualify'`)
		for _, op := range operations {
			req := proofRequest(id.OperationID(op))
			err = errors.Join(err, b.store.Delete(req.DatabaseID, req.Filename))
		}
		return err
	})
}

// use is how an extension is used.
type use struct {
	fill  string   // makes tables that need the extension, and fills them
	holds []string // is true then
	// search needs the index, if PostgreSQL may not read the table instead.
	search, index string
}

// works fails unless everything holds, and the index is found by.
func (u use) works(ctx context.Context, conn *pgconn.PgConn, where string) error {
	for _, query := range u.holds {
		switch said, err := answer(ctx, conn, query); {
		case err != nil:
			return err
		case said != "t":
			return &unqualifiedError{fmt.Sprintf("%s, this is not true: %s", where, query)}
		}
	}
	plan, err := answer(ctx, conn, `SET enable_seqscan = off; EXPLAIN `+u.search)
	if err == nil && !strings.Contains(plan, u.index) {
		err = &unqualifiedError{fmt.Sprintf("%s, %s does not use the index %s", where, u.search, u.index)}
	}
	return err
}

// answer runs statements, and returns the text of the last one's first column.
func answer(ctx context.Context, conn *pgconn.PgConn, statements string) (string, error) {
	results, err := conn.Exec(ctx, statements).ReadAll()
	if err != nil || len(results) == 0 {
		return "", err
	}
	var lines []string
	for _, row := range results[len(results)-1].Rows {
		lines = append(lines, string(row[0]))
	}
	return strings.Join(lines, "\n"), nil
}
