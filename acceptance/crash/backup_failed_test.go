package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/backups"
)

// unverifiable makes rows whose restore is canceled elsewhere, so that nobody can say whether the file is good.
const unverifiable = `CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() LIKE 'verify%' THEN PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(10); END IF;
		RETURN true; END $$;
	CREATE TABLE trapped (n int CHECK (trap())); INSERT INTO trapped VALUES (1)`

// hopelessFlow makes a backup that cannot be verified. It fails, leaves no file, and holds up nothing that comes after.
type hopelessFlow struct{ guest }

func (f *hopelessFlow) ready(t *testing.T, w *world) {
	f.guest = newLoadedGuest(t, w, "hopeless")
	must(f.conn.ExecContext(soon(t), unverifiable))(t)
}

func (f *hopelessFlow) act(t *testing.T, _ *world, api *stack.Host) { f.backUp(t, api) }

func (f *hopelessFlow) check(t *testing.T, w *world, api *stack.Host) {
	all := f.operations(t, api)
	if len(all) != 1 || all[0].Status != "failed" || all[0].Error == nil || all[0].Error.Code != "AGENT_ERROR" {
		t.Fatalf("operations: %+v", all)
	}
	if list := f.backups(t, api); len(list) != 0 {
		t.Errorf("backups: %+v", list)
	}
	must(f.conn.ExecContext(soon(t), "DROP TABLE trapped"))(t)
	f.startBackup(t, api)
	w.quiet(t)
	list := f.backups(t, api)
	if len(list) != 1 || list[0].VerifiedAt == nil {
		t.Fatalf("backups after the next: %+v", list)
	}
	f.set(t, api, "stop")
	f.set(t, api, "start")
}

func failingBackups() []killing {
	const what = "backup that cannot be verified"
	cases := []killing{kill(inAgent, what, &hopelessFlow{}, crash.BackupFailed)}
	for _, p := range around(backups.Kind, "close") {
		cases = append(cases, kill(inBatch, what, &hopelessFlow{}, p))
	}
	failed := func() flow { return &hopelessFlow{} }
	return append(cases, aroundCommits(inBatch, backups.Kind, what, failed, "failed")...)
}
