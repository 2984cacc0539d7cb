package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/storage"
)

// quotaFlow is a database that grows beyond its quota.
type quotaFlow struct{ guest }

// ready leaves the database 1 MB of its quota.
func (f *quotaFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "grown")
	must(f.conn.ExecContext(soon(t), `CREATE TABLE ballast AS
		SELECT string_agg(md5(i::text), '') AS x FROM generate_series(1, 400000) i GROUP BY i / 50`))(t)
	var size int64
	noError(t, f.conn.QueryRowContext(soon(t), "SELECT pg_database_size(current_database())").Scan(&size))
	must(w.meta.ExecContext(soon(t), `UPDATE accounts SET database_bytes = $2
		WHERE id = (SELECT account_id FROM databases WHERE id = $1)`, f.db.ID, size+1<<20))(t)
}

// act writes some 2 MB: more than is left, and less than what closes the database.
func (f *quotaFlow) act(t *testing.T, _ *world, _ *stack.Host) {
	must(f.conn.ExecContext(soon(t), "INSERT INTO ballast SELECT x FROM ballast LIMIT 1250"))(t)
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
