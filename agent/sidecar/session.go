package sidecar

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// A transaction has so many steps: each can lock a table with its indexes, and the server has a bounded number of locks for
// all. Nobody else sees the copy, and one that is half made is dropped.
const together = 200

// begins are how each transaction begins. Names mean what they meant to pg_dump. The disk is not waited for: after a crash nobody
// goes on with the copy, and when it becomes somebody's database, that transaction waits for all before it.
var begins = []string{
	`BEGIN`, `SET LOCAL search_path = ''`, `SET LOCAL client_encoding = 'UTF8'`,
	`SET LOCAL lock_timeout = '30s'`, `SET LOCAL statement_timeout = '10min'`, `SET LOCAL synchronous_commit = off`,
}

// session executes steps.
type session struct {
	conn  *pgconn.PgConn
	steps []step
}

// add executes a step, perhaps later.
func (s *session) add(ctx context.Context, st step) error {
	s.steps = append(s.steps, st)
	if len(s.steps) < together {
		return nil
	}
	return s.flush(ctx)
}

// flush executes what was added, in one transaction, and each by the extended protocol: the server, too, sees one statement in
// it.
func (s *session) flush(ctx context.Context) error {
	if len(s.steps) == 0 {
		return nil
	}
	batch, places := compose(s.steps)
	s.steps = s.steps[:0]
	results := s.conn.ExecBatch(ctx, batch)
	done := 0
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err != nil {
			break
		}
		done++
	}
	if err := results.Close(); err != nil {
		return failedAt(places, done, err)
	}
	return nil
}

// compose makes one transaction of steps. Each role is taken on where it changes.
func compose(steps []step) (batch *pgconn.Batch, places []place) {
	batch = new(pgconn.Batch)
	send := func(sql string, at place) {
		batch.ExecParams(sql, nil, nil, nil, nil)
		places = append(places, at)
	}
	for _, sql := range begins {
		send(sql, place{})
	}
	as := ""
	for _, st := range steps {
		if st.as != as {
			as = st.as
			role := "NONE"
			if as != "" {
				role = dumpsql.QuoteIdentifier(as)
			}
			send("SET LOCAL ROLE "+role, st.at)
		}
		send(st.sql, st.at)
	}
	send("COMMIT", place{})
	return batch, places
}

// failedAt names the place of what the server refused.
func failedAt(places []place, done int, err error) error {
	var refused *pgconn.PgError
	if done < len(places) && places[done].object != "" && errors.As(err, &refused) {
		return places[done].failed(err)
	}
	return fmt.Errorf("make the copy: %w", err)
}
