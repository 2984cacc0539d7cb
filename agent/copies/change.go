package copies

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/restore"
)

// How long rows are counted before the rest is estimated: in the database that customers use, whose statements may wait for that,
// and in the copy of an upload. What a backup holds stands in its manifest.
const (
	liveCounted = time.Second
	copyCounted = 10 * time.Second
)

// changeOf says what the switch to a copy that is complete would change. A database that cannot be read may be the reason for
// the restore, so that this is no error.
func (x *Copies) changeOf(ctx context.Context, copied *Isolated, req Request, set *fileSet) (c restore.Change, err error) {
	before, err := x.extentOf(ctx, req.Database, req.OperationID, liveCounted)
	if err != nil && ctx.Err() == nil {
		x.Log.Warn("what a database holds before its restore could not be counted",
			zap.String("operationId", string(req.OperationID)), zap.String("databaseId", string(req.DatabaseID)), zap.Error(err))
		before, c.Unknown, err = content.Extent{}, true, nil
	}
	if err != nil {
		return c, err
	}
	var after content.Extent
	if set.uploaded {
		if after, err = x.extentOf(ctx, copied.Name(), req.OperationID, copyCounted); err != nil {
			return c, err
		}
	} else {
		rows := set.manifest.Contents.Rows
		after.Tables, after.Rows = int64(len(rows)), set.manifest.Contents.LargeObjects
		for _, n := range rows {
			after.Rows += n
		}
	}
	c.Tables = restore.Count{Before: before.Tables, After: after.Tables}
	c.Rows = restore.Count{Before: before.Rows, After: after.Rows}
	c.Estimated = before.Estimated || after.Estimated
	return c, nil
}

func (x *Copies) extentOf(
	ctx context.Context, database string, op id.OperationID, within time.Duration,
) (e content.Extent, err error) {
	err = x.Server.With(database, op, func(db *sql.DB) (err error) {
		connect := func(ctx context.Context) (*pgconn.PgConn, error) { return x.Server.Connect(ctx, database, op) }
		e, err = content.ExtentOf(ctx, db, connect, within)
		return err
	})
	return e, err
}
