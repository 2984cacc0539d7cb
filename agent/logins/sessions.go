package logins

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/ledger"
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
func (x *Logins) endSelected(ctx context.Context, ended endedSessions, selected string, oid uint32) (n int, err error) {
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
func (x *Logins) endLogin(ctx context.Context, l loginRow, ended endedSessions) error {
	look := func() (int, error) { return x.endSelected(ctx, ended, sessionsOf, l.oid) }
	if err := x.ledger.Until(ctx, "sessions are still open", look); err != nil {
		return err
	}
	if _, err := x.ledger.AwaitArriving(ctx); err != nil {
		return err
	}
	return x.ledger.Until(ctx, "sessions are still open", look)
}

// forced runs statements about a login in one transaction, whatever transaction of a customer's is in the way. That is mostly one
// of the login's own sessions, with a change of its own role left open.
func (x *Logins) forced(ctx context.Context, l loginRow, ended endedSessions, statements ...string) error {
	endOwn := func() error { return x.endLogin(ctx, l, ended) }
	return x.ledger.PushThrough(ctx, endOwn, append([]string{ledger.FlushLater}, statements...)...)
}
