package postgres

import (
	"cmp"
	"context"
	"fmt"

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
	databasesAhead = map[ports.DueWork]*pgdb.Statement{ //nolint:exhaustive // only these have generations
		ports.DueAllowlist: recordedAhead("allowlist_applied"), ports.DueSettings: recordedAhead("settings_applied"),
	}
	databasesBetween   = pgdb.Define(readDatabases().Where("t.server_id = ? AND t.id > ?::uuid AND t.id <= ?::uuid").OrderBy("t.id"))
	databasesOfAccount = pgdb.Written("SELECT id FROM databases d WHERE account_id = $1 AND NOT d." + gone + " ORDER BY id")
	backupBytes        = pgdb.Written(`SELECT coalesce(sum(size_bytes), 0)::bigint FROM backups b
		WHERE database_id = $1 AND ` + countedBackup)
)

// countedBackup is true of a backup b that counts against the quota of its database.
const countedBackup = "b.deleting_at IS NULL AND b.damaged_at IS NULL AND (b.trigger <> 'deletion' OR b.expires_at IS NOT NULL)"

// recordedAhead finds the databases of which a column is above what is given.
func recordedAhead(column string) *pgdb.Statement {
	return pgdb.Define(readDatabases().Join("unnest(?::uuid[], ?::bigint[]) h (id, has) ON h.id = t.id").
		Where("t.server_id = ? AND t." + column + " > h.has AND NOT t." + gone).OrderBy("t.id"))
}

type storage struct{ pgdb.Session }

func (s storage) Servers(ctx context.Context) ([]server.Server, error) {
	return pgdb.All[server.Server](ctx, s.Session, serversInUse)
}

func (s storage) OnServer(ctx context.Context, of id.ServerID, list []id.DatabaseID) ([]database.Record, error) {
	return pgdb.All[database.Record](ctx, s.Session, databasesOnServer, of, pq.Array(list))
}

func (s storage) Ahead(
	ctx context.Context, of id.ServerID, what ports.DueWork, has map[id.DatabaseID]int64,
) ([]database.Record, error) {
	st, ok := databasesAhead[what]
	if !ok {
		return nil, fmt.Errorf("servers have no generation of %q", what)
	}
	list, generations := make([]id.DatabaseID, 0, len(has)), make(pq.Int64Array, 0, len(has))
	for db, generation := range has {
		list, generations = append(list, db), append(generations, generation)
	}
	return pgdb.All[database.Record](ctx, s.Session, st, pgdb.Listed(list), generations, of)
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
