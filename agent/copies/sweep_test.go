package copies_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// copied makes a copy as the agent does, and enters it.
func (w *world) copied(purpose string, n int, row string) (name string) {
	w.T.Helper()
	name = fmt.Sprintf("%s_%032x", purpose, n)
	clustertest.Exec(w.T, w.Cluster.URLFor("pgherd_agent", backuptest.Password, "postgres"), `CREATE ROLE `+name+` LOGIN`,
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
			purpose, n, operation(n), backuptest.DatabaseID, untilClosed)
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
		check.NoError(t, super.QueryRow(query).Scan(&names))
		return names
	}
	check.NoError(t, w.Agent.Copies.Sweep(t.Context()))
	if got := left(); got != open+" "+open+" "+open {
		t.Errorf("left while its operation is open: %s", got)
	}
	clustertest.Exec(t, w.Cluster.URL("postgres"), `UPDATE ledger.operation SET closed = true`)
	check.NoError(t, w.Agent.Copies.Sweep(t.Context()))
	if got := left(); got != "" {
		t.Errorf("left when all are closed: %s", got)
	}
	clustertest.Exec(t, w.Cluster.URL("postgres"), row("verify", 5, false)) // whose login somebody has dropped by hand
	if err := w.Agent.Copies.Sweep(t.Context()); err != nil || left() != "" {
		t.Errorf("a row without a login: %s, %v", left(), err)
	}
}
