package abuse_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// lockTable is what is used of PostgreSQL's table of locks, which all sessions share. Other work takes some.
var lockTable = []shared{counted("locks", 1000, "SELECT count(*) FROM pg_locks WHERE NOT fastpath")}

// manyLocks takes advisory locks, which stay with the session after the statement has failed. Each session begins at another key.
const manyLocks = `SELECT count(pg_advisory_lock(%d00000000 + n)) FROM generate_series(1, 10000000) n`

// fillLocks takes as many locks as it can in one session.
func fillLocks(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	return m.over(t, m.database(t, "locks"), func(int) string { return fmt.Sprintf(manyLocks, 1) }, 1)
}

// fillLocksTogether takes as many locks as it can in twenty sessions.
func fillLocksTogether(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	return m.over(t, m.database(t, "locks-together"), func(n int) string { return fmt.Sprintf(manyLocks, n+1) }, 20)
}

// countTogether computes for as long.
func countTogether(t *testing.T, m *mallory) {
	d := m.database(t, "counts-together")
	m.over(t, d, func(int) string { return "SELECT count(sqrt(n)) FROM generate_series(1, 1000000) n" }, 20)
}

// unlinkMuch locks many large objects in one transaction.
func unlinkMuch(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "large-objects", "SELECT count(lo_create(0)) FROM generate_series(1, 200000)")
	const unlinks = `DO $$ BEGIN PERFORM lo_unlink(oid) FROM pg_largeobject_metadata; PERFORM pg_sleep(600); END $$`
	return m.over(t, d, func(int) string { return unlinks }, 1)
}

// lockPause is between two attempts of a session, which take CPU time too.
const lockPause = time.Second

// over runs a statement in so many sessions, over and over: each of them is ended by the service.
func (m *mallory) over(
	t *testing.T, d wire.CreatedDatabase, statement func(session int) string, sessions int,
) (stillOn func(*testing.T)) {
	ended := new(atomic.Int64)
	for n := range sessions {
		db := m.at(t, d.Name, d.Username, d.Password)
		again(t, func(ctx context.Context) {
			conn, err := db.Conn(ctx) // a pool would try again by itself
			if err != nil {
				return
			}
			if _, err := conn.ExecContext(ctx, statement(n)); err != nil && ctx.Err() == nil {
				ended.Add(1)
			}
			_ = conn.Close()
			wait(ctx, lockPause)
		})
	}
	return func(t *testing.T) {
		check.Eventually(t, "no session was ended", func() bool { return ended.Load() > 0 })
		t.Logf("%d sessions were ended", ended.Load())
	}
}
