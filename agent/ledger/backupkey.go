package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Keys are what the backups of databases are encrypted with.
type Keys struct {
	ledger  *Ledger
	passing []byte
}

// Keys returns the keys of this process. The backup with which an extension is tried is of no database, and outlives no process.
func (l *Ledger) Keys() *Keys {
	passing := make([]byte, sealed.KeyBytes)
	_, _ = rand.Read(passing) // it never fails
	return &Keys{ledger: l, passing: passing}
}

// Of returns the key of a database. DATABASE_NOT_FOUND where there is none.
func (k *Keys) Of(ctx context.Context, db id.DatabaseID) ([]byte, error) {
	const query = `SELECT backup_key FROM ledger.database WHERE id = $1
		UNION ALL SELECT backup_key FROM ledger.departed WHERE database_id = $1 LIMIT 1`
	key, err := pg.One[[]byte](ctx, k.ledger.DB(), query, string(db))
	if !errors.Is(err, sql.ErrNoRows) {
		return key, err
	}
	const trying = `SELECT EXISTS (SELECT FROM ledger.job WHERE operation_id = $1 AND kind = 'extension.qualify')`
	tried, err := pg.One[bool](ctx, k.ledger.DB(), trying, string(db))
	switch {
	case err != nil:
		return nil, err
	case tried:
		return k.passing, nil
	}
	return nil, NoDatabase(string(db))
}

// BackupKey tells the key of a database of the ledger.
func (l *Ledger) BackupKey(ctx context.Context, q command.AskBackupKey) (command.BackupKey, error) {
	const query = `SELECT backup_key FROM ledger.database WHERE id = $1`
	key, err := pg.One[[]byte](ctx, l.DB(), query, string(q.DatabaseID))
	if errors.Is(err, sql.ErrNoRows) {
		err = NoDatabase(string(q.DatabaseID))
	}
	return command.BackupKey{Key: key}, err
}
