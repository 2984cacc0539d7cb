package abuse_test

import (
	"context"
	"testing"
)

// unstored are segments of WAL that wait for the archive. After the end of who writes, they are stored soon.
var unstored = counted("segments that wait to be stored", 64,
	`SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`)

// writeLoop writes as fast as one session can, into a table that stays small.
const writeLoop = `DO $$ BEGIN LOOP INSERT INTO written SELECT repeat(md5(n::text), 30) FROM generate_series(1, 2000) n;
	TRUNCATE written; COMMIT; END LOOP; END $$`

// writeMuch has one session write WAL without end, on a server that archives it.
func writeMuch(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const position = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
	var before, after int64
	noError(t, m.asSuperuser.QueryRowContext(soon(t), position).Scan(&before))
	m.writes(t, "writes", "TABLE")
	return func(t *testing.T) {
		noError(t, m.asSuperuser.QueryRowContext(soon(t), position).Scan(&after))
		if written := after - before; written < 16<<20 {
			t.Errorf("only %d bytes of WAL were written", written)
		}
	}
}

// writeUnlogged writes as much into a table without WAL.
func writeUnlogged(t *testing.T, m *mallory) { m.writes(t, "unlogged", "UNLOGGED TABLE") }

func (m *mallory) writes(t *testing.T, name, kind string) {
	t.Helper()
	d := m.database(t, name, "CREATE "+kind+" written (text text)")
	db := m.at(t, d.Name, d.Username, d.Password)
	again(t, func(ctx context.Context) { _, _ = db.ExecContext(ctx, writeLoop) })
}
