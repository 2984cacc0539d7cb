package stack

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// BackupSet is a backup of a database by the first agent.
func (s *Stack) BackupSet(ctx context.Context, db id.DatabaseID, name backup.Filename) (set backupfiles.Set, err error) {
	ledger, err := sql.Open("postgres", s.Server.URL(setup.MaintenanceDatabase))
	if err != nil {
		return set, err
	}
	set = backupfiles.Set{Folder: s.BlobDir(), Database: db, Filename: name}
	err = ledger.QueryRowContext(ctx, "SELECT backup_key FROM ledger.database WHERE id = $1", db).Scan(&set.Key)
	return set, errors.Join(err, ledger.Close())
}
