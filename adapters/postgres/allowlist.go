package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

var allowlistTable = pgdb.TableOf[database.AllowlistEntry]("allowlist_entries")

var (
	addEntry    = pgdb.Define(allowlistTable.Insert())
	listEntries = pgdb.Define(allowlistTable.Read().Where("t.database_id = ?").OrderBy("t.created_at", "t.id"))
	removeEntry = pgdb.Define(pgdb.Dollar.Delete("allowlist_entries t").Where("t.database_id = ? AND t.id = ?").
			Suffix("RETURNING " + allowlistTable.Row("t")))
)

type allowlist struct{ pgdb.Session }

func (a allowlist) List(ctx context.Context, db id.DatabaseID) ([]database.AllowlistEntry, error) {
	return pgdb.All[database.AllowlistEntry](ctx, a.Session, listEntries, db)
}

func (a allowlist) Add(ctx context.Context, e database.AllowlistEntry) error {
	return a.Write(ctx, addEntry, allowlistTable.Values(e)...)
}

func (a allowlist) Remove(
	ctx context.Context, db id.DatabaseID, entry id.AllowlistEntryID,
) (database.AllowlistEntry, error) {
	return pgdb.Locked[database.AllowlistEntry](ctx, a.Session, removeEntry, db, entry)
}
