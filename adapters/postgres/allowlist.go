package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

var allowlistTable = pgdb.TableOf[database.AllowlistEntry]("allowlist_entries").Added()

var (
	listEntries = pgdb.Define(allowlistTable.Read().Where("t.database_id = ?").OrderBy("t.created_at", "t.id"))
	removeEntry = pgdb.Define(pgdb.Dollar.Delete("allowlist_entries t").Where("t.database_id = ? AND t.id = ?").
			Suffix("RETURNING " + allowlistTable.Row("t")))
)

type allowlist struct {
	pgdb.Rows[database.AllowlistEntry]
}

func (a allowlist) List(ctx context.Context, db id.DatabaseID) ([]database.AllowlistEntry, error) {
	return a.All(ctx, listEntries, db)
}

func (a allowlist) Remove(
	ctx context.Context, db id.DatabaseID, entry id.AllowlistEntryID,
) (database.AllowlistEntry, error) {
	return a.Locked(ctx, removeEntry, db, entry)
}
