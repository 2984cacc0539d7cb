package past

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// A rescue is one transaction in the live database, and a comment on its schema says whose it is. So nothing is left of one that
// did not end, and one that did is found again, whoever was killed then.

func (x *Past) rescues(slots *jobs.Slots) jobs.Kind[command.Rescue, command.RescueReport] {
	reported := func(r command.RescueReport, err error) (command.RescueReport, error) {
		if err == nil {
			return r, nil
		}
		look, err := failed(err)
		return command.RescueReport{Look: look}, err
	}
	return jobs.Kind[command.Rescue, command.RescueReport]{
		Slots: slots,
		Run: func(ctx context.Context, j jobs.Job, c command.Rescue, tell jobs.Tell) (command.RescueReport, error) {
			return reported(x.rescue(ctx, j, c, jobs.Rising(tell)))
		},
		Abandon: func(ctx context.Context, j jobs.Job, c command.Rescue, attempts int, last error) (command.RescueReport, error) {
			r, found, err := x.rescued(ctx, j, c)
			if err == nil && !found {
				err = copies.CutShort("rescue", attempts, last)
			}
			return reported(r, err)
		},
		Discard: x.dropRescue,
		Complete: func(ctx context.Context, j jobs.Job, c command.Rescue) (bool, error) {
			_, found, err := x.rescued(ctx, j, c)
			var taken *refusal
			if errors.As(err, &taken) || noDatabase(err) {
				return false, nil
			}
			return found, err
		},
		Running: func(stage string, progress int, bytes command.Bytes) command.RescueReport {
			return command.RescueReport{Look: running(stage, progress, bytes)}
		},
		Failed: func(cause error) command.RescueReport { return command.RescueReport{Look: givenUp(cause)} },
		Made:   func(r command.RescueReport) bool { return r.State == command.LookDone },
	}
}

func noDatabase(err error) bool { return pq.As(err, "3D000") != nil }

// rescue rescues the tables, or finds that an earlier attempt has.
func (x *Past) rescue(ctx context.Context, j jobs.Job, c command.Rescue, tell jobs.Tell) (r command.RescueReport, err error) {
	r, found, err := x.rescued(ctx, j, c)
	if err != nil || found {
		return r, err
	}
	room := func(size int64) []diskroom.Need {
		return []diskroom.Need{{Purpose: diskroom.Copy, Bytes: diskroom.CopySize(size)}}
	}
	err = x.beside(ctx, j, []time.Time{c.At}, room, tell, func(ctx context.Context) error {
		side, err := x.archive.Recover(ctx, momentOf(j, c.At), func(stage string, progress int, bytes command.Bytes) {
			tell(stage, progress*pastShare/100, bytes)
		})
		if err != nil {
			return err
		}
		x.Crash("rescue.recovered")
		err = x.Server.With(j.Database, j.OperationID, func(live *sql.DB) (err error) {
			r, err = x.copyOver(ctx, j, c, side, live, tell)
			return err
		})
		return errors.Join(err, side.Close())
	})
	return r, err
}

// pastShare is how much of the progress of a rescue it is to have the database back as it was.
const pastShare = 60

// copyOver copies the tables from the side to the live database.
func (x *Past) copyOver(
	ctx context.Context, j jobs.Job, c command.Rescue, side *archive.Side, live *sql.DB, tell jobs.Tell,
) (r command.RescueReport, err error) {
	list, err := tablesThen(ctx, side, j.OperationID, c.Tables)
	if err != nil {
		return r, err
	}
	total, err := x.fits(ctx, live, list, c.MaxBytes)
	if err != nil {
		return r, err
	}
	from, err := reader(ctx, side, j.OperationID)
	if err != nil {
		return r, err
	}
	defer from.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	w, err := x.writer(ctx, j, c, live)
	if err != nil {
		return r, err
	}
	defer w.conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // what is not committed is undone
	x.Crash("rescue.begun")
	r.Look, r.Tables = done(), make([]recovery.Rescued, 0, len(list))
	copied := &progress{tell: jobs.Share(tell, recovery.Copying, pastShare, 99-pastShare), total: total}
	for _, t := range list {
		rows, notes, err := w.fill(ctx, from, t, copied)
		if err != nil {
			return r, fmt.Errorf("rescue %s: %w", t, err)
		}
		r.Tables = append(r.Tables, recovery.Rescued{Of: t.String(), Name: t.Rescued(), Rows: rows})
		r.Notes = command.Noted(r.Notes, notes...)
	}
	if err := w.exec(ctx, comment(w.schema, markOf(j.OperationID, r))); err != nil {
		return r, err
	}
	x.Crash("rescue.copied")
	if err := w.exec(ctx, "COMMIT"); err != nil {
		return r, err
	}
	x.Crash("rescue.committed")
	return r, nil
}

func tablesThen(ctx context.Context, side *archive.Side, op id.OperationID, want []recovery.Table) (list []table, err error) {
	err = side.Server.With(side.Database, op, func(db *sql.DB) error {
		for i, of := range want {
			t, err := then(ctx, db, i, of)
			if err != nil {
				return err
			}
			list = append(list, t)
		}
		return nil
	})
	return list, err
}

// fits refuses tables with which the live database would be larger than it may, and returns how many bytes they have.
func (x *Past) fits(ctx context.Context, live *sql.DB, list []table, most int64) (total int64, err error) {
	for _, t := range list {
		total += t.bytes
	}
	has, err := pg.One[int64](ctx, live, "SELECT pg_database_size(current_database())")
	if err == nil && has+total > most {
		err = &refusal{command.ReasonTooLarge, "", fmt.Sprintf("the database has %d bytes and the tables had %d, and it may take %d",
			has, total, most)}
	}
	return total, err
}

// reader is a session in the side of a login that can read everything there, and do nothing else. Nobody knows that server, which
// ends with the rescue.
func reader(ctx context.Context, side *archive.Side, op id.OperationID) (conn *pgconn.PgConn, err error) {
	login := "pgherd_reader_" + id.Compact(op)
	err = side.Server.Admin(op, func(admin *sql.DB) error {
		name := dumpsql.QuoteIdentifier(login)
		return pg.InTransaction(ctx, admin,
			`CREATE ROLE `+name+` LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS IN ROLE pg_read_all_data`,
			`GRANT CONNECT ON DATABASE `+dumpsql.QuoteIdentifier(side.Database)+` TO `+name)
	})
	if err != nil {
		return nil, fmt.Errorf("make the login that reads: %w", err)
	}
	return side.Server.Dial(ctx, login, "", side.Database, map[string]string{
		"application_name": sessions.Name(op), "options": written + " -c default_transaction_read_only=on",
	})
}

// written are the options of both sessions of a copy: what one writes the other reads.
const written = sessions.Options + " -c DateStyle=ISO,MDY -c xmloption=content -c row_security=off"

// writer is a transaction in the live database, of its owner's rights.
type writer struct {
	conn   *pgconn.PgConn
	live   *sql.DB
	owner  string
	schema string
}

func (x *Past) writer(ctx context.Context, j jobs.Job, c command.Rescue, live *sql.DB) (w writer, err error) {
	w = writer{live: live, owner: database.RoleNames(j.DatabaseID, j.Database).Owner, schema: recovery.RescueSchema(c.At)}
	w.conn, err = x.Server.Dial(ctx, x.Server.User, x.Server.Password, j.Database, map[string]string{
		"application_name": sessions.Name(j.OperationID), "options": written,
	})
	if err != nil {
		return w, err
	}
	err = w.exec(ctx, "BEGIN; SET LOCAL ROLE "+dumpsql.QuoteIdentifier(w.owner)+
		"; CREATE SCHEMA "+dumpsql.QuoteIdentifier(w.schema))
	if err == nil {
		return w, nil
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42P06" {
		err = taken(w.schema)
	}
	return w, errors.Join(err, w.conn.Close(context.WithoutCancel(ctx)))
}

func taken(schema string) error {
	return &refusal{
		command.ReasonNameTaken, "", "the database has a schema " + schema + " already: rename or drop it, or take another moment",
	}
}

func (w writer) exec(ctx context.Context, statements string) error {
	return w.conn.Exec(ctx, statements).Close()
}

// fill makes a table, and copies its rows.
func (w writer) fill(ctx context.Context, from *pgconn.PgConn, t table, p *progress) (rows int64, notes []string, err error) {
	types := map[string]bool{}
	for _, c := range t.columns {
		key := c.needs.schema + "\x00" + c.needs.name
		if types[key], err = standing(ctx, w.live, w.owner, c.needs); err != nil {
			return 0, nil, err
		}
	}
	statement, notes := t.made(w.schema, func(d dataType) bool { return types[d.schema+"\x00"+d.name] })
	if err := w.exec(ctx, statement); err != nil {
		return 0, nil, permanent(err)
	}
	read, write := io.Pipe()
	sent := make(chan error, 1)
	var out pgconn.CommandTag
	go func() {
		var err error
		out, err = from.CopyTo(ctx, io.MultiWriter(write, p), t.read())
		sent <- err
		_ = write.CloseWithError(err) // it never fails
	}()
	in, err := w.conn.CopyFrom(ctx, read, "COPY "+t.in(w.schema)+" FROM STDIN")
	_ = read.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // it never fails
	if unsent := <-sent; unsent != nil && !errors.Is(unsent, io.ErrClosedPipe) {
		err = unsent
	}
	if err == nil && in.RowsAffected() != out.RowsAffected() {
		err = fmt.Errorf("%d rows were read and %d written", out.RowsAffected(), in.RowsAffected())
	}
	return in.RowsAffected(), notes, permanent(err)
}

// permanent makes a refusal of what PostgreSQL would refuse again: a value that is none any more, or a right.
func permanent(err error) error {
	var no *pgconn.PgError
	if errors.As(err, &no) && (strings.HasPrefix(no.Code, "22") || strings.HasPrefix(no.Code, "42")) {
		message := "PostgreSQL does not take the rows of then (SQLSTATE " + no.Code + ")"
		return errors.Join(&refusal{command.ReasonFailed, "", message}, err)
	}
	return err
}

// progress counts what is copied. total is what the tables had on the disk, which is about that.
type progress struct {
	tell        jobs.Part
	done, total int64
}

func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	p.tell(min(p.done, p.total), p.total)
	return len(b), nil
}

// mark is what the comment of a schema begins with that a rescue has made. What the rescue has come to follows, in a line of its
// own.
func mark(op id.OperationID) string { return "pgherd rescue, operation " + string(op) + "\n" }

func markOf(op id.OperationID, r command.RescueReport) string {
	text, _ := json.Marshal(r) // it has nothing that cannot be written
	return mark(op) + string(text)
}

func comment(schema, text string) string {
	return "COMMENT ON SCHEMA " + dumpsql.QuoteIdentifier(schema) + " IS " + pg.Quote(text)
}

// rescued looks whether an earlier attempt has rescued the tables. A schema of that name that is not the operation's is a
// *refusal.
func (x *Past) rescued(ctx context.Context, j jobs.Job, c command.Rescue) (r command.RescueReport, found bool, err error) {
	schema := recovery.RescueSchema(c.At)
	const query = `SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = $1`
	var text string
	err = x.Server.With(j.Database, j.OperationID, func(db *sql.DB) (err error) {
		text, err = pg.One[string](ctx, db, query, schema)
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	wrote, ours := strings.CutPrefix(text, mark(j.OperationID))
	if !ours || json.Unmarshal([]byte(wrote), &r) != nil {
		return r, false, taken(schema)
	}
	r.Look = done()
	return r, true, nil
}

// dropRescue drops the schema of a rescue that is given up after all.
func (x *Past) dropRescue(ctx context.Context, j jobs.Job, c command.Rescue) error {
	_, found, err := x.rescued(ctx, j, c)
	var others *refusal
	if errors.As(err, &others) || noDatabase(err) || err == nil && !found {
		return nil
	}
	if err != nil {
		return err
	}
	return x.Server.With(j.Database, j.OperationID, func(db *sql.DB) error {
		return pg.InTransaction(ctx, db,
			"SET LOCAL ROLE "+dumpsql.QuoteIdentifier(database.RoleNames(j.DatabaseID, j.Database).Owner),
			"DROP SCHEMA "+dumpsql.QuoteIdentifier(recovery.RescueSchema(c.At))+" CASCADE")
	})
}
