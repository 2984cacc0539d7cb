package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

const (
	// takeTime is how long the last changes are waited for in one command, and takePause is between two looks.
	takeTime  = 10 * time.Second
	takePause = 3 * time.Millisecond
)

// take waits for the last changes, and takes over what does not come by them. From the moment on at which all is there, the
// ledger says so: then the subscription goes.
func (x *Target) take(ctx context.Context, e protocol.Command, c command.Take) (none command.None, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err == nil {
		err = x.ledger.Moves(ctx, e.OperationID, d)
	}
	if err != nil {
		return none, err
	}
	f, found, err := x.followingOf(ctx, e.OperationID)
	switch {
	case err != nil:
		return none, err
	case !found:
		return none, command.Refuse(command.ReasonNotFound, "the operation does not follow the database")
	}
	op := id.OperationID(e.OperationID)
	if !f.reached.Valid {
		if err := x.reach(ctx, op, d, c.Parted.Position); err != nil {
			return none, err
		}
	}
	crash.Point(crash.TakeReached)
	if err := x.unsubscribe(ctx, op, d, append(f.back, setSequences(c.Parted.Sequences)...)...); err != nil {
		return none, notTaken(err)
	}
	crash.Point(crash.TakeDropped)
	if err := x.lines.Close(ctx, op); err != nil {
		return none, err
	}
	return ledger.Conclude(ctx, x.ledger, e, none, crash.TakeReply)
}

// reach waits until all changes up to a position are applied. PostgreSQL says of what it has confirmed that all before it is.
func (x *Target) reach(ctx context.Context, op id.OperationID, d ledger.Database, position string) error {
	const query = `SELECT s.subenabled, coalesce(t.latest_end_lsn >= $2::pg_lsn, false)
		FROM pg_subscription s LEFT JOIN pg_stat_subscription t ON t.subid = s.oid AND t.relid IS NULL WHERE s.subname = $1`
	for deadline := time.Now().Add(takeTime); ; {
		var enabled, there bool
		err := x.db.QueryRowContext(ctx, query, NameOf(op), position).Scan(&enabled, &there)
		if err == nil && !enabled {
			enabled, err = x.revive(ctx, op, d)
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return command.Refuse(command.ReasonNotFound, "the operation does not follow the database")
		case pg.State(err) == invalidText:
			return command.Refuse(command.ReasonInvalid, "parted.position is none")
		case err != nil:
			return err
		case !enabled:
			return command.Refuse(command.ReasonAltered, "a change of the database could not be repeated at the new server")
		case there:
			const reached = "UPDATE ledger.following SET reached = $2::pg_lsn WHERE operation_id = $1"
			_, err := x.db.ExecContext(ctx, reached, string(op), position)
			return err
		case time.Now().After(deadline):
			return command.Refuse(command.ReasonUnfinished, "changes are still missing")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(takePause):
		}
	}
}

const invalidText = "22P02"

func setSequences(list []command.Sequence) (statements []string) {
	for _, s := range list {
		statements = append(statements, fmt.Sprintf("SELECT setval(%s, %d, %t)",
			pg.Quote(pg.Ident(s.Schema)+"."+pg.Ident(s.Name)), s.Last, s.Called))
	}
	return statements
}

// notTaken is ReasonAltered where the database does not have what its source has.
func notTaken(err error) error {
	switch pg.State(err) {
	case undefinedTable, undefinedSchema, undefinedObject, wrongObject:
		return &command.Refusal{
			Reason: command.ReasonAltered, Message: "sequences or triggers of the database are not those of the new server's", Cause: err,
		}
	}
	return err
}

// What PostgreSQL says of a trigger or sequence that is not there, and of something else of its name.
const undefinedObject, wrongObject = "42704", "42809"

// sequencesAtOnce bounds one query.
const sequencesAtOnce = 200

// Sequences are what those of a database give next.
func Sequences(ctx context.Context, db *sql.DB) (list []command.Sequence, err error) {
	const names = `SELECT format('SELECT %L, %L, last_value, is_called FROM %I.%I', n.nspname, c.relname, n.nspname, c.relname)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'S' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)' ORDER BY c.oid`
	queries, err := pg.Column(ctx, db, names)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(queries, sequencesAtOnce) {
		err := pg.Each(ctx, db, func(rows *sql.Rows) error {
			var s command.Sequence
			err := rows.Scan(&s.Schema, &s.Name, &s.Last, &s.Called)
			list = append(list, s)
			return err
		}, strings.Join(some, " UNION ALL "))
		if err != nil {
			return nil, fmt.Errorf("read sequences: %w", err)
		}
	}
	return list, nil
}
