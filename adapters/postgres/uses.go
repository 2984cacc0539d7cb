package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

var useTable = pgdb.TableOf[operation.Use]("operation_uses")

var (
	addUse   = pgdb.Define(useTable.Insert())
	listUses = pgdb.Define(useTable.Read().Join("operations o ON o.id = t.operation_id AND o."+open).
			Where("t.database_id = ?").OrderBy("t.operation_id", "t.backup"))
)

type uses struct{ pgdb.Session }

func (u uses) Add(ctx context.Context, row operation.Use) error {
	return u.Write(ctx, addUse, useTable.Values(row)...)
}

func (u uses) Of(ctx context.Context, db id.DatabaseID) ([]operation.Use, error) {
	return pgdb.All[operation.Use](ctx, u.Session, listUses, db)
}
