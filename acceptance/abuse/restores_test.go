package abuse_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/restore"
)

// What a database does in the copy of a restore, and in no other: its backups are verified like any other's. One keeps a
// processor busy for ever, whoever cancels its statement; the other one writes for ever.
const (
	burnFunction = `CREATE FUNCTION burn() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() NOT LIKE 'restore\_%' THEN RETURN true; END IF;
		LOOP BEGIN LOOP PERFORM md5('x'); END LOOP; EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$`
	burnTable    = `CREATE TABLE checked (n int CHECK (burn()))`
	growTable    = `CREATE TABLE grown (text text)`
	growFunction = `CREATE FUNCTION grow() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() NOT LIKE 'restore\_%' THEN RETURN true; END IF;
		LOOP INSERT INTO public.grown SELECT repeat(md5(n::text), 20) FROM generate_series(1, 10000) n; END LOOP; END $$`
	grownTable = `CREATE TABLE checked (n int CHECK (grow()))`
)

const (
	// burnTime is how long a restore burns before it is canceled, so that the next one fills the disk.
	burnTime = 3 * time.Second
	// stepPause keeps a key below the default limit of writes with three databases.
	stepPause = 1500 * time.Millisecond
)

// restoreMuch restores one database that burns and one that grows in turn, over and over; an account loads one copy at a time. A
// third one's restores are reserved, advanced and canceled.
func restoreMuch(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	burning := m.restorable(t, "burning", burnFunction, burnTable, hangRow)
	growing := m.restorable(t, "growing", growTable, growFunction, grownTable, hangRow)
	changed := m.restorable(t, "changed", `CREATE TABLE checked (n int)`, hangRow)
	burned, ended, canceled := new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)
	again(t, func(ctx context.Context) {
		if m.restore(ctx, burning, func(o wire.Operation) bool { return o.Stage == string(restore.Loading) }) == nil {
			burned.Add(1)
		}
		wait(ctx, burnTime)
		m.cancelRestore(ctx, burning)
		err := m.restore(ctx, growing, func(wire.Operation) bool { return false })
		if stacktest.Code(err) == fault.RestoreOperationTerminal && strings.Contains(err.Error(), "its copy takes") {
			ended.Add(1)
		}
		m.cancelRestore(ctx, growing)
	})
	again(t, func(ctx context.Context) {
		_ = m.restore(ctx, changed, func(wire.Operation) bool { return true })
		if m.cancelRestore(ctx, changed) {
			canceled.Add(1)
		}
	})
	for ctx := soon(t); burned.Load() == 0; wait(ctx, stepPause) {
		noError(t, ctx.Err())
	}
	return func(t *testing.T) {
		for ctx := soon(t); ended.Load() == 0; wait(ctx, stepPause) {
			noError(t, ctx.Err()) // the bystander was quicker
		}
		t.Logf("%d restores burned, %d grew beyond their bound, %d were canceled", burned.Load(), ended.Load(), canceled.Load())
		if canceled.Load() == 0 {
			t.Error("no restore was canceled")
		}
	}
}

// restorable is a database with a backup.
type restorable struct {
	id   id.DatabaseID
	file backup.Filename
	open *id.OperationID
}

func (m *mallory) restorable(t *testing.T, name string, statements ...string) restorable {
	t.Helper()
	d := m.database(t, name, statements...)
	return restorable{d.ID, must(m.backUp(soon(t), d.ID))(t), new(id.OperationID)}
}

// restore reserves a restore and advances it until that is enough, or it has ended.
func (m *mallory) restore(ctx context.Context, of restorable, enough func(wire.Operation) bool) error {
	reserved, err := m.Restores.Reserve(ctx, of.id, wire.ReserveRestore{BackupFilename: of.file, ConfirmShrink: true})
	if err != nil {
		return err
	}
	*of.open = reserved.Operation.ID
	for ctx.Err() == nil {
		o, err := m.Restores.Advance(ctx, reserved.Operation.ID)
		if err != nil || enough(o) {
			return err
		}
		wait(ctx, stepPause)
	}
	return ctx.Err()
}

// cancelRestore ends the last restore of a database, also when the test ends.
func (m *mallory) cancelRestore(ctx context.Context, of restorable) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err := m.Operations.Cancel(ctx, *of.open)
	if err == nil {
		_, err = m.Operations.Await(ctx, *of.open, 50*time.Millisecond)
	}
	return err == nil
}
