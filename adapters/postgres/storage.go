package postgres

import (
	"cmp"
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

var (
	serversInUse = pgdb.Define(serverTable.Read().
			Where("EXISTS (SELECT FROM databases d WHERE d.server_id = t.id AND NOT d." + gone + ")").OrderBy("t.name"))
	databasesOnServer = pgdb.Define(readDatabases().Where("t.server_id = ? AND t.id = ANY(?::uuid[])").
				Where("NOT t." + gone).OrderBy("t.id"))
	databasesBetween   = pgdb.Define(readDatabases().Where("t.server_id = ? AND t.id > ?::uuid AND t.id <= ?::uuid").OrderBy("t.id"))
	databasesOfAccount = pgdb.Written("SELECT id FROM databases d WHERE account_id = $1 AND NOT d." + gone + " ORDER BY id")
	backupBytes        = pgdb.Written(`SELECT coalesce(sum(size_bytes), 0)::bigint FROM backups b
		WHERE database_id = $1 AND ` + countedBackup)
	storageTotals = pgdb.Written(`SELECT coalesce(sum(size_bytes), 0)::bigint AS bytes,
		count(*) FILTER (WHERE storage_status = 'full') AS full,
		count(*) FILTER (WHERE storage_status = 'closed') AS closed FROM databases d WHERE NOT d.` + gone)
)

// countedBackup is true of a backup b that counts against the quota of its database.
const countedBackup = "b.deleting_at IS NULL AND b.damaged_at IS NULL AND (b.trigger <> 'deletion' OR b.expires_at IS NOT NULL)"

type storage struct{ pgdb.Session }

func (s storage) Servers(ctx context.Context) ([]server.Server, error) {
	return pgdb.All[server.Server](ctx, s.Session, serversInUse)
}

func (s storage) OnServer(ctx context.Context, of id.ServerID, list []id.DatabaseID) ([]database.Record, error) {
	return pgdb.All[database.Record](ctx, s.Session, databasesOnServer, of, pq.Array(list))
}

// The lowest and the highest ID: nobody has either.
const (
	firstID id.DatabaseID = "00000000-0000-0000-0000-000000000000"
	lastID  id.DatabaseID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

func (s storage) Between(ctx context.Context, of id.ServerID, after, last id.DatabaseID) ([]database.Record, error) {
	return pgdb.All[database.Record](ctx, s.Session, databasesBetween, of, cmp.Or(after, firstID), cmp.Or(last, lastID))
}

func (s storage) OfAccount(ctx context.Context, account id.AccountID) ([]id.DatabaseID, error) {
	return pgdb.All[id.DatabaseID](ctx, s.Session, databasesOfAccount, account)
}

func (s storage) BackupBytes(ctx context.Context, db id.DatabaseID) (int64, error) {
	return pgdb.One[int64](ctx, s.Session, backupBytes, db)
}

func (s storage) Totals(ctx context.Context) (ports.StorageTotals, error) {
	return pgdb.One[ports.StorageTotals](ctx, s.Session, storageTotals)
}
