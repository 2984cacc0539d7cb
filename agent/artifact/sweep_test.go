package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A backup that is resumed has the names of what its predecessor left, and is swept away by nobody.
func TestSweepLeavesAResumedBackupAlone(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n`)
	for _, point := range []string{"backup.after-login", "backup.verify.database-created"} {
		w.root = t.TempDir()
		w.kill(point)
		w.files = w.open(store.Options{Reserve: 1})
		next := artifact.New(w.config(), w.files)
		if err := next.EndPredecessor(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		swept := make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil {
				if failed := next.Sweep(ctx); ctx.Err() == nil {
					err = errors.Join(err, failed)
				}
			}
			swept <- err
		}()
		result, err := w.run(next, w.request())
		if err != nil || result.VerifiedAt == nil {
			t.Errorf("%s: %+v, %v", point, result, err)
		}
		cancel()
		if err := <-swept; err != nil {
			t.Errorf("%s: the sweep: %v", point, err)
		}
		if left := w.leftovers(); left != "" {
			t.Errorf("%s leaves %s", point, left)
		}
	}
}

// copied makes a copy as the agent does, and enters it.
func (w *world) copied(purpose string, n int, row string) (name string) {
	w.t.Helper()
	name = fmt.Sprintf("%s_%032x", purpose, n)
	clustertest.Exec(w.t, w.Cluster.URLFor("pgherd_agent", password, "postgres"), `CREATE ROLE `+name+` LOGIN`,
		fmt.Sprintf(`COMMENT ON ROLE %[1]s IS 'pgherd isolated copy %[1]s'`, name), row, `CREATE DATABASE `+name+` TEMPLATE template0`)
	return name
}

// Copies of one database stand beside each other. Of those that are wanted until their operation is closed, a sweep drops those
// whose operation is; of others, all that nobody works on.
func TestSweepDropsTheCopiesThatNobodyWants(t *testing.T) {
	w := newWorld(t)
	super := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	operation := func(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012x", n) }
	row := func(purpose string, n int, untilClosed bool) string {
		return fmt.Sprintf(`INSERT INTO ledger.copy VALUES ('%[1]s_%032[2]x', '%[1]s', '%[3]s', '%[4]s', %[5]t)`,
			purpose, n, operation(n), databaseID, untilClosed)
	}
	for n, closed := range map[int]bool{1: false, 2: true} {
		clustertest.Exec(t, w.Cluster.URL("postgres"),
			fmt.Sprintf(`INSERT INTO ledger.operation (id, epoch, closed) VALUES ('%s', 1, %t)
				ON CONFLICT (id) DO UPDATE SET closed = excluded.closed`, operation(n), closed))
	}
	open := w.copied("other", 1, row("other", 1, true))
	w.copied("other", 2, row("other", 2, true)) // its operation is closed
	w.copied("other", 3, row("other", 3, true)) // its operation is forgotten
	w.copied("verify", 1, row("verify", 1, false))
	left := func() (names string) {
		t.Helper()
		const query = `SELECT concat_ws(' ', (SELECT string_agg(datname, ',') FROM pg_database WHERE datname ~ '^(other|verify)_'),
			(SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolname ~ '^(other|verify)_'),
			(SELECT string_agg(name, ',') FROM ledger.copy))`
		if err := super.QueryRow(query).Scan(&names); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if err := w.agent.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); got != open+" "+open+" "+open {
		t.Errorf("left while its operation is open: %s", got)
	}
	clustertest.Exec(t, w.Cluster.URL("postgres"), `UPDATE ledger.operation SET closed = true`)
	if err := w.agent.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); got != "" {
		t.Errorf("left when all are closed: %s", got)
	}
	clustertest.Exec(t, w.Cluster.URL("postgres"), row("verify", 5, false)) // whose login somebody has dropped by hand
	if err := w.agent.Sweep(t.Context()); err != nil || left() != "" {
		t.Errorf("a row without a login: %s, %v", left(), err)
	}
}
