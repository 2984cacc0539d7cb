package abuse_test

import (
	"context"
	"net/http"
	"testing"
	"time"
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

// hangVerifications starts as many backups that hang in their copy as the batch host has workers.
func hangVerifications(t *testing.T, m *mallory) {
	const workers = 4
	all := m.hangingDatabases(t, "hanging", workers)
	m.hang(t, all...)
	m.held = all
}

// hangingDatabases makes some whose backups hang in their copy.
func (m *mallory) hangingDatabases(t *testing.T, prefix string, count int) []made {
	t.Helper()
	return m.databases(t, prefix, count, hangFunction, hangTable, hangRow)
}

// hang starts backups that are canceled at the end of the test, and waits until each is in its copy.
func (m *mallory) hang(t *testing.T, databases ...made) {
	t.Helper()
	for _, o := range m.startBackups(t, databases) {
		m.awaitStage(t, o.ID, "verifying")
	}
}

// startBackups starts backups that are canceled at the end of the test.
func (m *mallory) startBackups(t *testing.T, databases []made) (started []operation) {
	t.Helper()
	for _, d := range databases {
		o, err := m.startBackup(soon(t), d.ID)
		noError(t, err)
		t.Cleanup(func() { m.cancelBackup(t, o.ID) })
		started = append(started, o)
	}
	return started
}

func (m *mallory) awaitStage(t *testing.T, operation, stage string) {
	t.Helper()
	var o struct{ Status, Stage string }
	for ctx := soon(t); o.Stage != stage; time.Sleep(50 * time.Millisecond) {
		if err := m.call(ctx, http.MethodGet, "/operations/"+operation, nil, &o); err != nil {
			t.Fatalf("the backup is %s (%s): %v", o.Status, o.Stage, err)
		}
	}
}

// cancelBackup also waits for the end. It is a cleanup, when the test's own context has ended.
func (m *mallory) cancelBackup(t *testing.T, operation string) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	noError(t, m.call(ctx, http.MethodPost, "/operations/"+operation+"/cancel", nil, nil))
	for o := (struct{ Status string }{}); o.Status != "canceled"; time.Sleep(50 * time.Millisecond) {
		if err := m.call(ctx, http.MethodGet, "/operations/"+operation, nil, &o); err != nil {
			t.Fatalf("the canceled backup is %s: %v", o.Status, err)
		}
	}
	if took := time.Since(began); took > endsWithin {
		t.Errorf("a canceled backup ended after %s, later than %s", took.Round(time.Millisecond), endsWithin)
	}
}

// stillHanging counts the copies.
func stillHanging(t *testing.T, m *mallory) {
	if copies, want := m.hangingCopies(t), len(m.held.([]made)); copies != want {
		t.Errorf("%d of %d copies hang", copies, want)
	}
}

func (w *world) hangingCopies(t *testing.T) (copies int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'verify_%' AND wait_event = 'PgSleep'`
	noError(t, w.superuser(t).QueryRowContext(soon(t), query).Scan(&copies))
	return copies
}
