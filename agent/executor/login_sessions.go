package executor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
)

// endedSessions are the process IDs of the sessions that were ended.
type endedSessions map[int]bool

// The sessions of a login, whose oid is $1, whatever its name is now and in whatever database: all of them, and those that began
// before its last change.
const (
	sessionsOf = ` FROM pg_stat_activity a WHERE a.backend_type = 'client backend' AND a.usesysid = $1::oid`

	sessionsBefore = sessionsOf +
		` AND a.backend_start < (SELECT p.changed_at FROM ledger.role p WHERE p.oid = $1::oid)`
)

// endSelected terminates what a condition selects and returns how many there were.
func (x *Executor) endSelected(ctx context.Context, ended endedSessions, selected string, oid uint32) (n int, err error) {
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var pid int
		var sent bool
		err := rows.Scan(&pid, &sent)
		ended[pid] = true
		n++
		return err
	}, "SELECT a.pid, pg_terminate_backend(a.pid)"+selected, oid)
	return n, err
}

// endLogin terminates the sessions of a login until none is left, also none that was about to begin. Make it NOLOGIN first.
func (x *Executor) endLogin(ctx context.Context, l loginRow, ended endedSessions) error {
	look := func() (int, error) { return x.endSelected(ctx, ended, sessionsOf, l.oid) }
	if err := x.until(ctx, "sessions are still open", look); err != nil {
		return err
	}
	if _, err := x.awaitArriving(ctx); err != nil {
		return err
	}
	return x.until(ctx, "sessions are still open", look)
}

// blockers are the customers' sessions that a session of the agent, whose process is $1, waits for. Its statements are about
// roles: any login may be in the way, by a function that changes the role which made it.
const blockers = ` FROM unnest(pg_blocking_pids($1::int)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid
	LEFT JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.backend_type = 'client backend' AND (` + agentsOwn + `) IS NOT TRUE
	  AND r.rolsuper IS DISTINCT FROM true`

// blockerPause is between two looks at who is in the way.
const blockerPause = 50 * time.Millisecond

// forced runs statements about a login in one transaction, whatever transaction of a customer's is in the way. That is mostly one
// of the login's own sessions, with a change of its own role left open.
func (x *Executor) forced(ctx context.Context, l loginRow, ended endedSessions, statements ...string) error {
	endOwn := func() error { return x.endLogin(ctx, l, ended) }
	return x.pushThrough(ctx, endOwn, append([]string{flushLater}, statements...)...)
}

// pushThrough runs statements in one transaction, again and again. Whoever is in the way is ended: those that endOwn ends, and
// those that PostgreSQL names.
func (x *Executor) pushThrough(ctx context.Context, endOwn func() error, statements ...string) error {
	try, push := pg.Transaction(append([]string{soon}, statements...)), pg.Transaction(append([]string{firmly}, statements...))
	for n := 0; ; n++ {
		err := pg.Send(ctx, x.db, try)
		if !inTheWay(err) {
			return err
		}
		if err := endOwn(); err != nil {
			return err
		}
		if n == 0 {
			continue // mostly nobody else was in the way
		}
		err = x.pushing.run(ctx, func() error { return pg.Freshly(func() error { return x.endingBlockers(ctx, push, nil) }) })
		if !inTheWay(err) {
			return err
		}
	}
}

// errTurnOver is inTheWay: who is there comes again and again.
var errTurnOver = errors.New("the turn is over")

// endingBlockers sends one message over the connection for that and terminates the customers' sessions that it waits for, and
// those that another function ends. That takes another connection, out of the pool, where nobody waits for this one.
func (x *Executor) endingBlockers(whole context.Context, text string, end func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(whole, pushTime)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && whole.Err() == nil {
			err = fmt.Errorf("%w: %w", errTurnOver, err)
		}
	}()
	conn, err := x.urgent.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- conn.Raw(func(c any) error { return pg.SendOver(ctx, c, text) }) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(blockerPause):
		}
		_, err := x.db.ExecContext(ctx, "SELECT pg_terminate_backend(a.pid)"+blockers, pid)
		if err == nil && end != nil {
			err = end(ctx)
		}
		if err != nil {
			return errors.Join(err, <-done)
		}
	}
}
