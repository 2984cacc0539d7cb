package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

var useTable = pgdb.TableOf[operation.Use]("operation_uses").Added()

var (
	listUses = pgdb.Define(useTable.Read().Join("operations o ON o.id = t.operation_id AND o."+open).
		Where("t.database_id = ?").OrderBy("t.operation_id", "t.backup"))
)

type uses struct{ pgdb.Rows[operation.Use] }

func (u uses) Of(ctx context.Context, db id.DatabaseID) ([]operation.Use, error) {
	return u.All(ctx, listUses, db)
}
