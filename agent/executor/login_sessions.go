package executor

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/setup"
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
	rows, err := x.db.QueryContext(ctx, "SELECT a.pid, pg_terminate_backend(a.pid)"+selected, oid)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		var sent bool
		if err := rows.Scan(&pid, &sent); err != nil {
			return n, err
		}
		ended[pid] = true
		n++
	}
	return n, rows.Err()
}

// endLogin terminates the sessions of a login until none is left, also none that was about to begin. Make it NOLOGIN first.
func (x *Executor) endLogin(ctx context.Context, l loginRow, ended endedSessions) error {
	look := func() (int, error) { return x.endSelected(ctx, ended, sessionsOf, l.oid) }
	if err := x.until(ctx, "sessions are still open", look); err != nil {
		return err
	}
	if err := x.awaitArriving(ctx); err != nil {
		return err
	}
	return x.until(ctx, "sessions are still open", look)
}

// blockers are the customers' sessions that the agent's own statements in the maintenance database wait for. Those are about
// roles: any login may be in the way, by a function that changes the role which made it.
const blockers = ` FROM pg_stat_activity w, unnest(pg_blocking_pids(w.pid)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid
	LEFT JOIN pg_roles r ON r.oid = a.usesysid
	WHERE w.usename = '` + setup.AgentLogin + `' AND w.datname = '` + setup.MaintenanceDatabase + `' AND w.wait_event_type = 'Lock'
	  AND a.backend_type = 'client backend' AND a.usename IS DISTINCT FROM '` + setup.AgentLogin + `'
	  AND r.rolsuper IS DISTINCT FROM true`

// blockerPause is between two looks at who is in the way.
const blockerPause = 50 * time.Millisecond

// endingBlockers runs a statement and terminates the customers' sessions that it waits for.
func (x *Executor) endingBlockers(ctx context.Context, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(blockerPause):
		}
		if _, err := x.db.ExecContext(ctx, "SELECT pg_terminate_backend(a.pid)"+blockers); err != nil {
			return errors.Join(err, <-done)
		}
	}
}
