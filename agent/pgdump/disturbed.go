package pgdump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
)

// Disturbed is what a dump ends with that somebody else's statements were in the way of. Another try can succeed.
type Disturbed struct {
	How    string // what happened, for the customer
	Object string // to which table or the like; empty where that is not known
	Cause  error

	relation uint32 // the OID of one whose name is not known yet
	locked   bool   // it stayed locked
}

func (e *Disturbed) Error() string { return e.Text() + ": " + e.Cause.Error() }
func (e *Disturbed) Unwrap() error { return e.Cause }

// Text says what happened, for the customer.
func (e *Disturbed) Text() string {
	if e.Object == "" {
		return e.How
	}
	return e.How + " (" + e.Object + ")"
}

// quotedName is that of the relation c in the schema n, empty where there is none.
const quotedName = `coalesce(min(quote_ident(n.nspname) || '.' || quote_ident(c.relname)), '')`

// name finds out the name of what was waited for.
func (e *Disturbed) name(ctx context.Context, db *sql.DB) error {
	if e.relation == 0 {
		return nil
	}
	const query = `SELECT ` + quotedName + ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1`
	name, err := pg.One[string](ctx, db, query, e.relation)
	e.Object = name
	return err
}

// What PostgreSQL and pg_dump say of something that is removed or renamed while they read it.
var vanished = regexp.MustCompile(`(?m)ERROR:  (.* does not exist.*|cache lookup failed for .*|could not open relation .*|` +
	`could not find .*|could not obtain lock .*|tuple concurrently .*)$|` +
	`^pg_dump: error: (definition of view .*|query to obtain definition of view .*|failed sanity check.*|query returned 0 rows .*)$`)

// What PostgreSQL says of a table that is to be locked and has gone.
const (
	undefinedTable  = "42P01"
	undefinedSchema = "3F000"
)

const longestComplaint = 200

// removed returns what was removed or renamed, in PostgreSQL's words; nil where that is not what has happened.
func removed(err error) *Disturbed {
	var failed *failedError
	var refused *pgconn.PgError
	said := ""
	switch old := new(pq.Error); {
	case errors.As(err, &failed):
		said = failed.complaint
	case errors.As(err, &refused):
		said = "ERROR:  " + refused.Message
	case errors.As(err, &old):
		said = "ERROR:  " + old.Message
	}
	found := vanished.FindStringSubmatch(said)
	if found == nil {
		return nil
	}
	text := []rune(found[1] + found[2])
	return &Disturbed{
		How:   "something was removed, replaced or renamed: PostgreSQL says: " + string(text[:min(len(text), longestComplaint)]),
		Cause: err,
	}
}

// waiting bounds how long others wait for what a dump holds, in its sessions of these process IDs. It returns a *Disturbed when
// somebody has waited so long, or the dump itself for longer than LockWait; nil when ctx ends.
func (d *Dump) waiting(ctx context.Context, admin *sql.DB, pids []int64) error {
	for ctx.Err() == nil {
		if err := d.waits(ctx, admin, pids); err != nil && ctx.Err() == nil {
			return err
		}
		_ = loop.Wait(ctx, lookPause)
	}
	return nil
}

const (
	// waitsLongest and lookPause are such that nobody waits for more than a second, with the time that it takes to end a dump.
	waitsLongest = 400 * time.Millisecond
	lookPause    = 100 * time.Millisecond
)

// ofDump is the condition that a session is still one of a dump's: its process ID may be another session's by now, as pg_dump has
// ended it.
const ofDump = `pid = ANY ($1) AND application_name = $2`

func (d *Dump) waits(ctx context.Context, admin *sql.DB, pids []int64) error {
	// The second condition costs much, and what is waited for is seldom.
	const query = `WITH own AS MATERIALIZED (SELECT array_agg(pid) AS pids FROM pg_stat_activity WHERE ` + ofDump + `),
		waiting AS MATERIALIZED (SELECT pid, pid = ANY (pids) AS ours FROM pg_stat_activity, own
			WHERE datname = $3 AND wait_event_type = 'Lock' AND (pid = ANY (pids) OR pg_blocking_pids(pid) && pids))
		SELECT w.ours, coalesce(l.relation, 0), extract(epoch FROM coalesce(clock_timestamp() - l.waitstart, '0'))
		FROM waiting w CROSS JOIN LATERAL (SELECT relation, waitstart FROM pg_locks WHERE NOT granted AND pid = w.pid LIMIT 1) l`
	return pg.Each(ctx, admin, func(rows *sql.Rows) error {
		var own bool
		var relation uint32
		var seconds float64
		if err := rows.Scan(&own, &relation, &seconds); err != nil {
			return err
		}
		waited := time.Duration(seconds * float64(time.Second))
		switch {
		case own && waited > d.tool.LockWait:
			return &Disturbed{locked: true, relation: relation, Cause: errWaits}
		case !own && waited > waitsLongest:
			return &Disturbed{How: "other sessions waited for what the dump reads", relation: relation, Cause: errHurts}
		}
		return nil
	}, query, pq.Array(pids), sessions.Name(d.op), d.database)
}

var (
	errWaits = errors.New("the dump waits for a lock")
	errHurts = fmt.Errorf("a session has waited for the dump for longer than %s", waitsLongest)
)
