package endless

import (
	"context"
	"database/sql"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/pg"
)

// What a session may have exported at a time. A parallel pg_dump exports one snapshot. A session that has no bound makes some
// thousands of files a second.
const (
	maxExports     = 100
	maxExportBytes = 16 << 20
)

// endExporters ends the sessions of customers that have exported more. Their files go with their transactions.
func (w *Watch) endExporters(ctx context.Context) error {
	return pg.Each(ctx, w.db, func(rows *sql.Rows) error {
		var ended bool
		var login, database string
		var files, bytes int64
		err := rows.Scan(&ended, &login, &database, &files, &bytes)
		w.counted.exporters.Add(1)
		w.seldom.Warn(w.log, "snapshots of "+login, "a session was ended that had exported too many snapshots",
			zap.String("login", login), zap.String("database", database), zap.Int64("files", files), zap.Int64("bytes", bytes))
		return err
	}, `SELECT pg_terminate_backend(e.pid), r.rolname, coalesce(a.datname, ''), e.files, e.bytes::bigint
		FROM server.exported_snapshots() e JOIN pg_stat_activity a ON a.pid = e.pid JOIN pg_roles r ON r.oid = a.usesysid
		WHERE (e.files > $1 OR e.bytes > $2) AND r.rolname <> current_user AND NOT r.rolsuper`,
		maxExports, maxExportBytes)
}
