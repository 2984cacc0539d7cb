package copies_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What a restore would change is counted, large objects too, but for a table that somebody has locked: nobody waits for that.
func TestWhatARestoreChanges(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE many AS SELECT n FROM generate_series(1, 1000) n; CREATE TABLE one AS SELECT 1 AS n;
		CREATE TABLE part (n int) PARTITION BY RANGE (n); CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (9);
		INSERT INTO part VALUES (1), (2); CREATE TABLE grown (n int) INHERITS (one); INSERT INTO grown VALUES (3);
		SELECT lo_from_bytea(0, 'large') FROM generate_series(1, 20);`)
	w.Load("ANALYZE")
	req := w.uploaded("CREATE TABLE public.one (n int);\nINSERT INTO public.one VALUES (1), (2);\n")
	changes := func() restore.Change {
		loaded := check.Must(w.Agent.Copies.Load(t.Context(), req, backuptest.Unseen))(t)
		check.NoError(t, w.Agent.Copies.Discard(t.Context(), backuptest.OperationID))
		return loaded.Change
	}
	want := restore.Change{Tables: restore.Count{Before: 4, After: 1}, Rows: restore.Count{Before: 1024, After: 2}}
	if got := changes(); got != want {
		t.Errorf("it changes %+v, want %+v", got, want)
	}
	locked := func() restore.Change {
		tx := check.Must(clustertest.Database{URL: w.Patient("shop")}.Open(t).Begin())(t)
		check.Must(tx.Exec("LOCK TABLE many"))(t)
		defer func() { check.NoError(t, tx.Rollback()) }()
		return changes()
	}
	began := time.Now()
	want.Estimated = true
	if got := locked(); got != want {
		t.Errorf("while a table is locked, it changes %+v, want %+v", got, want)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if agenttest.Major() >= 18 { // which lets who owns a table say how many rows it has
		w.Load(`SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 'many', 'reltuples', 'Infinity'::real)`)
		if got := locked(); !got.Estimated || got.Rows.Before < 999e9 || got.Rows.Before > 1001e9 {
			t.Errorf("with endless statistics, it changes %+v", got)
		}
	}
	w.LeavesNothing()
}
