package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

var (
	backupKeyTable = pgdb.TableOf[backup.Key]("backup_keys").Added()
	getBackupKey   = pgdb.Define(backupKeyTable.Read().Where("t.database_id = ?"))
)

type backupKeys struct{ pgdb.Rows[backup.Key] }

func (k backupKeys) Get(ctx context.Context, db id.DatabaseID) (backup.Key, error) {
	return k.One(ctx, getBackupKey, db)
}
