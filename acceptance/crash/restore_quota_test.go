package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/operation"
)

// A database that has grown so far beyond its quota that its customers are kept out is restored from a backup that is within it,
// and lets them in again, to write.
func TestRestoreOfADatabaseBeyondItsQuota(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	d := newDriven(t, w, operation.Succeeded)
	must(w.meta.ExecContext(soon(t), `UPDATE accounts SET database_bytes = $2
		WHERE id = (SELECT account_id FROM databases WHERE id = $1)`, d.db.ID, 12<<20))(t)
	d.asOwner(t, w, "CREATE TABLE ballast AS SELECT repeat(md5(i::text), 50) AS x FROM generate_series(1, 20000) i")
	isShut := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprint("the database is kept shut: ", want), func() (bool, string) {
			var shut bool
			err := w.maintenance.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM pooler.shut)").Scan(&shut)
			return err == nil && shut == want, fmt.Sprint(shut, err)
		})
	}
	isShut(true)
	if d.comesIn(t, w) == nil {
		t.Fatal("a database that is shut lets its owner in")
	}
	d.drive(t, w, isRestored)
	w.look(t) // a batch host that starts asks for all sizes, and must hear of none from before
	isShut(false)
	d.says(t, w, "old")
	d.asOwner(t, w, "UPDATE word SET said = 'new'")
	w.settled(t)
}
