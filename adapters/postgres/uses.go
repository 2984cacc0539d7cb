package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

var useTable = tableOf[operation.Use]("operation_uses")

var (
	addUse   = define(useTable.insert())
	listUses = define(useTable.read().Join("operations o ON o.id = t.operation_id AND o."+open).
			Where("t.database_id = ?").OrderBy("t.operation_id", "t.backup"))
)

type uses struct{ session }

func (u uses) Add(ctx context.Context, row operation.Use) error {
	return u.write(ctx, addUse, useTable.values(row)...)
}

func (u uses) Of(ctx context.Context, db id.DatabaseID) ([]operation.Use, error) {
	return all[operation.Use](ctx, u.session, listUses, db)
}
