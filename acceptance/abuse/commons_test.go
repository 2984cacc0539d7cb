package abuse_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"
)

// What no quota of a database bounds, and how much more of it may be in use 10 s after somebody has tried to take all: the bound
// of the agent's flag, and what is taken before the agent has looked. Dead rows stay until autovacuum has come.
var (
	keptIDs = counted("transaction IDs that are kept", 2_000_000, `SELECT coalesce(max(greatest(age(backend_xid),
		age(backend_xmin))), 0) FROM pg_stat_activity WHERE backend_type = 'client backend'`)
	queueInUse   = counted("part of the queue of notifications", 0.01, `SELECT pg_notification_queue_usage()`)
	catalogBytes = counted("bytes of the shared catalogs", 256<<20, `SELECT pg_tablespace_size('pg_global')`)
)

const (
	burnLoop   = `DO $$ BEGIN LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`
	notifyLoop = `DO $$ BEGIN LOOP PERFORM pg_notify('x', repeat('y', 7000) || n) FROM generate_series(1, 1000) n; COMMIT;
		END LOOP; END $$`
	storeLoop = `DO $$ DECLARE random text := (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 5000));
		BEGIN LOOP EXECUTE format('ALTER ROLE CURRENT_USER SET application_name = %L', clock_timestamp() || random); COMMIT;
		END LOOP; END $$`
)

func burnIDs(t *testing.T, m *mallory) func(*testing.T) {
	return m.takes(t, "ids", "SELECT 1", burnLoop)
}
func fillQueue(t *testing.T, m *mallory) func(*testing.T) {
	return m.takes(t, "notify", "LISTEN x", notifyLoop)
}

// sendMuch makes as much text, and sends it to a client.
func sendMuch(t *testing.T, m *mallory) {
	d := m.database(t, "sends")
	for entry, statement := range map[string]string{
		d.Name: "SELECT repeat('y', 7000) || n FROM generate_series(1, 100000) n",
		d.Name + ".transaction": `DO $$ BEGIN LOOP PERFORM count(repeat('y', 7000) || n) FROM generate_series(1, 1000) n; COMMIT;
			END LOOP; END $$`,
	} {
		db := m.at(t, entry, d.Username, d.Password)
		again(t, func(ctx context.Context) { _, _ = db.ExecContext(ctx, statement) })
	}
}

func growCatalogs(t *testing.T, m *mallory) func(*testing.T) {
	return m.takes(t, "store", "SELECT 1", storeLoop)
}

// takes has one session begin a transaction over and over, after a first statement, and hold it, and another one take something
// without end. Each comes back when it is ended.
func (m *mallory) takes(t *testing.T, name, first, loop string) (stillOn func(*testing.T)) {
	d := m.database(t, name)
	ended := new(atomic.Int64)
	comesBack := func(entry string, statements ...string) {
		db := m.at(t, entry, d.Username, d.Password)
		again(t, func(ctx context.Context) {
			if inOneSession(ctx, db, statements) != nil {
				ended.Add(1)
				wait(ctx, 10*time.Millisecond)
			}
		})
	}
	comesBack(d.Name, first, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_sleep(600)")
	comesBack(d.Name+".transaction", loop)
	for ctx := soon(t); ended.Load() == 0 && ctx.Err() == nil; {
		wait(ctx, 50*time.Millisecond)
	}
	return func(t *testing.T) {
		if ended.Load() == 0 {
			t.Error("nobody was ended")
		}
	}
}

// inOneSession runs statements, and does not begin anew where the session is ended.
func inOneSession(ctx context.Context, db *sql.DB, statements []string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
