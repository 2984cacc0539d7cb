package extensions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	corebackup "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// qualifyTime bounds a proof. A database that is all but empty takes seconds.
const qualifyTime = 10 * time.Minute

// Prover finds out whether databases with an extension can be restored.
type Prover struct {
	copies  *copies.Copies
	backups *backup.Backups
}

// NewProver registers the kind of job that qualifies an extension.
func NewProver(l *ledger.Ledger, c *copies.Copies, b *backup.Backups) *Prover {
	p := &Prover{copies: c, backups: b}
	ledger.OnJob(l, p.kind())
	return p
}

// proof is what was found out about an extension.
type proof struct {
	serverVersion string
	why           string // it is not qualified; empty: it is
}

// unqualifiedError says what does not work.
type unqualifiedError struct{ why string }

func (e *unqualifiedError) Error() string { return e.why }

// kind qualifies an extension.
func (p *Prover) kind() jobs.Kind[command.QualifyExtension, command.ExtensionProof] {
	failed := func(message string) command.ExtensionProof {
		return command.ExtensionProof{State: command.ExtensionFailed, Message: message}
	}
	discard := func(ctx context.Context, j jobs.Job, _ command.QualifyExtension) error {
		return p.discard(ctx, j.OperationID)
	}
	return jobs.Kind[command.QualifyExtension, command.ExtensionProof]{
		Slots: jobs.NewSlots(1),
		Run: func(
			ctx context.Context, j jobs.Job, c command.QualifyExtension, tell jobs.Tell,
		) (command.ExtensionProof, error) {
			found, err := p.qualify(ctx, j.OperationID, c, tell)
			var late *jobs.TooLongError
			var known *fault.Error
			switch {
			case errors.As(err, &late):
				return failed(late.Error()), nil
			case errors.As(err, &known):
				return failed(known.Message), nil
			}
			return command.ExtensionProof{
				State: command.ExtensionDone, Stage: "done", Qualified: found.why == "", Message: found.why,
				Version: c.Version, ServerVersion: found.serverVersion,
			}, err
		},
		Abandon: func(
			ctx context.Context, j jobs.Job, c command.QualifyExtension, attempts int, _ error,
		) (command.ExtensionProof, error) {
			return failed(fmt.Sprintf("PostgreSQL or its agent went down during %d attempts", attempts)), discard(ctx, j, c)
		},
		Discard: discard,
		Running: func(stage string, _ int, _ command.Bytes) command.ExtensionProof {
			return command.ExtensionProof{State: command.ExtensionRunning, Stage: stage}
		},
		Failed: func(cause error) command.ExtensionProof {
			return failed(jobs.ForCustomer(cause, "the proof could not be made; journalctl --unit pgherd-agent there says why"))
		},
		Made: func(command.ExtensionProof) bool { return false }, // it leaves nothing
	}
}

// qualify proves that databases with an extension can be restored: it installs the extension in a database of its own, uses it,
// makes a backup, and has the restored copy compared and used. No customer's data or code is there. It leaves nothing, and what a
// crash leaves is removed by the next run of the operation, by the sweep, and by Forget. After an error nothing was found
// out; a *jobs.TooLongError or one with a code stays.
func (p *Prover) qualify(
	ctx context.Context, op id.OperationID, c command.QualifyExtension, tell jobs.Tell,
) (found proof, err error) {
	done, err := p.copies.Turn(ctx, op)
	if err != nil {
		return found, err
	}
	defer done()
	remove := func(ctx context.Context) error { return p.remove(ctx, op) }
	if err := remove(ctx); err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, p.copies.Server.CleanUp(ctx, remove)) }()
	limited, cancel := jobs.Within(ctx, "the proof", qualifyTime)
	defer cancel()
	err = p.copies.Server.Admin(op, func(admin *sql.DB) error {
		if err := admin.QueryRowContext(limited, `SHOW server_version`).Scan(&found.serverVersion); err != nil {
			return err
		}
		return p.tryOut(limited, admin, op, c, tell)
	})
	if late := jobs.Overlong(limited); late != nil {
		return found, late
	}
	found.why, err = whyNot(err)
	return found, err
}

// tryOut makes the database and its backup.
func (p *Prover) tryOut(
	ctx context.Context, admin *sql.DB, op id.OperationID, c command.QualifyExtension, tell jobs.Tell,
) error {
	l, err := content.Locale(ctx, admin)
	if err != nil {
		return err
	}
	made := p.copies.Scratch(op, admin)
	if err := made.Create(ctx, l, func(string) {}); err != nil {
		return err
	}
	u := uses[c.Extension]
	err = made.Session(ctx, func(conn *pgconn.PgConn) error {
		install := `CREATE EXTENSION ` + dumpsql.QuoteIdentifier(string(c.Extension)) + ` SCHEMA ` + extension.Schema +
			` VERSION ` + dumpsql.QuoteIdentifier(c.Version)
		if _, err := answer(ctx, conn, install+`;`+u.fill); err != nil {
			return err
		}
		return u.works(ctx, conn, "as installed")
	})
	if err != nil {
		return err
	}
	req := proofRequest(op)
	req.Database, req.Owner = made.Name(), made.Name()
	req.Try = func(ctx context.Context, conn *pgconn.PgConn) error { return u.works(ctx, conn, "as restored") }
	_, err = p.backups.Make(ctx, req, tell)
	return err
}

// proofRequest is the backup of a proof, which stands in the store like that of a database with the operation's ID.
func proofRequest(op id.OperationID) backup.Request {
	return backup.Request{
		OperationID: op, DatabaseID: id.DatabaseID(op), Filename: corebackup.FilenameAt(time.Unix(0, 0)), Passing: true,
		Verify: true,
	}
}

// whyNot tells what says something about the extension from what says nothing: a limit that passed, or an error that another
// attempt may not meet.
func whyNot(err error) (why string, open error) {
	var no *unqualifiedError
	var refused *pgconn.PgError
	var known *fault.Error
	var late *jobs.TooLongError
	var statement *load.StatementError
	switch {
	case errors.As(err, &late):
		return "", err
	case errors.As(err, &statement) && load.InTheWay(statement.SQLState): // there is no code of a customer's that could raise it
		return "", statement
	case errors.As(err, &no):
		return no.why, nil
	case errors.As(err, &known) && known.Code == fault.BackupNotVerified:
		return known.Message, nil
	case errors.As(err, &refused) && !load.Transient(refused.Code) && !load.InTheWay(refused.Code):
		return fmt.Sprintf("%s (SQLSTATE %s)", refused.Message, refused.Code), nil
	}
	return "", err
}

// discard removes everything that a proof has made. It must not be running.
func (p *Prover) discard(ctx context.Context, op id.OperationID) error {
	done, err := p.copies.Turn(ctx, op)
	if err != nil {
		return err
	}
	defer done()
	return p.remove(ctx, op)
}

func (p *Prover) remove(ctx context.Context, op id.OperationID) error {
	return errors.Join(p.backups.Remove(ctx, proofRequest(op)), p.copies.Server.Admin(op, func(admin *sql.DB) error {
		return p.copies.Scratch(op, admin).Drop(ctx, func(string) {})
	}))
}

// Forget removes the files of a predecessor's proofs. A starting agent calls it after EndPredecessor.
func (p *Prover) Forget(ctx context.Context) error {
	return p.copies.Server.Admin("", func(admin *sql.DB) error {
		operations, err := pg.Column(ctx, admin, `SELECT operation_id FROM ledger.job WHERE kind = 'extension.qualify'`)
		for _, op := range operations {
			req := proofRequest(id.OperationID(op))
			err = errors.Join(err, p.copies.Files.Passing().Delete(ctx, req.DatabaseID, req.Filename))
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
