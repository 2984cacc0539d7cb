package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

var allowlistTable = tableOf[database.AllowlistEntry]("allowlist_entries")

var (
	addEntry    = define(allowlistTable.insert())
	listEntries = define(allowlistTable.read().Where("t.database_id = ?").OrderBy("t.created_at", "t.id"))
	removeEntry = define(dollar.Delete("allowlist_entries t").Where("t.database_id = ? AND t.id = ?").
			Suffix("RETURNING " + allowlistTable.row("t")))
)

type allowlist struct{ session }

func (a allowlist) List(ctx context.Context, db id.DatabaseID) ([]database.AllowlistEntry, error) {
	return all[database.AllowlistEntry](ctx, a.session, listEntries, db)
}

func (a allowlist) Add(ctx context.Context, e database.AllowlistEntry) error {
	return a.write(ctx, addEntry, allowlistTable.values(e)...)
}

func (a allowlist) Remove(
	ctx context.Context, db id.DatabaseID, entry id.AllowlistEntryID,
) (database.AllowlistEntry, error) {
	return locked[database.AllowlistEntry](ctx, a.session, removeEntry, db, entry)
}
