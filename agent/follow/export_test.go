package follow

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/core/id"
)

// Bounded are the operations whose slots count.
func Bounded(ctx context.Context, db *sql.DB) (list []id.OperationID, err error) {
	all, err := (&Source{db: db}).slots(ctx)
	for _, one := range all {
		list = append(list, one.op)
	}
	return list, err
}
