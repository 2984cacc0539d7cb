package abuse_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// hang keeps the restored copy of a database busy: in the database itself the function returns at once, in a copy it sleeps, and
// starts again where the sleep is canceled.
const (
	hangFunction = `CREATE FUNCTION hang() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() LIKE 'hanging-%' THEN RETURN true; END IF;
		LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$`
	hangTable = `CREATE TABLE checked (n int CHECK (hang()))`
	hangRow   = `INSERT INTO checked VALUES (1)`
)

// endsWithin is how long a canceled backup may go on.
const endsWithin = 10 * time.Second

// hangVerifications starts more backups that hang in their copy than the agent has slots: half of these are the account's.
func hangVerifications(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const many, share = jobs.DefaultSlots + 2, jobs.DefaultSlots / 2
	m.startBackups(t, m.hangingDatabases(t, "hanging", many))
	for ctx := soon(t); m.hangingCopies(t) < share; time.Sleep(50 * time.Millisecond) {
		noError(t, ctx.Err())
	}
	return func(t *testing.T) {
		if copies := m.hangingCopies(t); copies != share {
			t.Errorf("%d copies hang, want %d", copies, share)
		}
	}
}

// hangingDatabases makes some whose backups hang in their copy.
func (m *mallory) hangingDatabases(t *testing.T, prefix string, count int) []wire.CreatedDatabase {
	t.Helper()
	return m.databases(t, prefix, count, hangFunction, hangTable, hangRow)
}

// hang starts backups that are canceled at the end of the test, and waits until each is in its copy.
func (m *mallory) hang(t *testing.T, databases ...wire.CreatedDatabase) {
	t.Helper()
	for _, o := range m.startBackups(t, databases) {
		m.awaitStage(t, o.ID, "verifying")
	}
}

// startBackups starts backups that are canceled at the end of the test.
func (m *mallory) startBackups(t *testing.T, databases []wire.CreatedDatabase) (started []wire.Operation) {
	t.Helper()
	for _, d := range databases {
		o := must(m.Backups.Start(soon(t), d.ID))(t)
		t.Cleanup(func() { m.cancelBackup(t, o.Operation.ID) })
		started = append(started, o.Operation)
	}
	return started
}

func (m *mallory) awaitStage(t *testing.T, of id.OperationID, stage string) {
	t.Helper()
	var last wire.Operation
	for ctx := soon(t); last.Stage != stage; time.Sleep(50 * time.Millisecond) {
		o, err := m.Operations.Get(ctx, of)
		if err != nil {
			t.Fatalf("the backup is %s (%s): %v", last.Status, last.Stage, err)
		}
		last = o
	}
}

// cancelBackup also waits for the end. It is a cleanup, when the test's own context has ended.
func (m *mallory) cancelBackup(t *testing.T, of id.OperationID) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(m.Operations.Cancel(ctx, of))(t)
	ended, err := m.Operations.Await(ctx, of, 50*time.Millisecond)
	if err != nil || ended.Status != operation.Canceled {
		t.Fatalf("the canceled backup is %s: %v", ended.Status, err)
	}
	if took := time.Since(began); took > endsWithin {
		t.Errorf("a canceled backup ended after %s, later than %s", took.Round(time.Millisecond), endsWithin)
	}
}

func (w *world) hangingCopies(t *testing.T) (copies int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'verify_%' AND wait_event = 'PgSleep'`
	noError(t, w.superuser(t).QueryRowContext(soon(t), query).Scan(&copies))
	return copies
}
