package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/storage"
)

// quotaFlow is a database that grows beyond its quota.
type quotaFlow struct{ guest }

func (f *quotaFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "grown")
	must(w.meta.ExecContext(soon(t), `UPDATE accounts SET database_bytes = 20000000
		WHERE id = (SELECT account_id FROM databases WHERE id = $1)`, f.db.ID))(t)
}

// act writes some 14 MB, beside the 7 that a new database has: more than the quota, and less than what closes it.
func (f *quotaFlow) act(t *testing.T, _ *world, _ *stack.Host) {
	must(f.conn.ExecContext(soon(t), `CREATE TABLE ballast AS
		SELECT string_agg(md5(i::text), '') AS x FROM generate_series(1, 400000) i GROUP BY i / 50`))(t)
}

func (f *quotaFlow) check(t *testing.T, w *world, _ *stack.Host) {
	eventually(t, "read-only", func() (bool, string) {
		var shown string
		err := w.customer(t, f.db.ConnectionString).QueryRowContext(soon(t), "SHOW default_transaction_read_only").Scan(&shown)
		return err == nil && shown == "on", shown
	})
}

func exceeding() []killing {
	return []killing{kill(inBatch, "quota", &quotaFlow{}, storage.CrashDecided)}
}
