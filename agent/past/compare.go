package past

import (
	"context"
	"database/sql"
	_ "embed"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// countTime bounds how long the rows of a moment are counted. Those of the other tables are estimated.
const countTime = time.Minute

// compare looks at both moments.
func (x *Past) compare(
	ctx context.Context, j jobs.Job, c command.CompareMoments, tell jobs.Tell,
) (r command.ComparisonReport, err error) {
	err = x.withEye(ctx, j, c.From, c.To, tell, func(ctx context.Context, e *eye) error {
		var sights [2][]recovery.Held
		for i, at := range []time.Time{c.From, c.To} {
			from := 50 * i
			side, err := e.at(ctx, at, func(stage string, progress int, bytes command.Bytes) { tell(stage, from+progress*2/5, bytes) })
			if err != nil {
				return err
			}
			tell(recovery.Counting, from+40, command.Bytes{})
			if sights[i], err = held(ctx, side, j.OperationID); err != nil {
				return err
			}
		}
		compared := recovery.Compare(c.From, c.To, sights[0], sights[1])
		r.Comparison = &compared
		return nil
	})
	return r, err
}

//go:embed held.sql
var queryHeld string

// held is what a database holds in the side.
func held(ctx context.Context, side *archive.Side, op id.OperationID) (list []recovery.Held, err error) {
	var readings [][]string
	var estimates []int64
	err = side.Server.With(side.Database, op, func(db *sql.DB) error {
		const what = "the names of its tables and columns"
		return content.ReadWithin(ctx, db, what, content.Most, queryHeld, func(rows *sql.Rows) (int, error) {
			var h recovery.Held
			var names, types, read []string
			var estimate int64
			err := rows.Scan(&h.Table.Schema, &h.Table.Name, pq.Array(&names), pq.Array(&types), pq.Array(&read), &estimate)
			size := len(h.Table.Schema) + len(h.Table.Name) + perTable
			for i, name := range names {
				h.Columns = append(h.Columns, recovery.Column{Name: name, Type: types[i]})
				size += len(name) + len(types[i]) + perTable
			}
			for _, r := range read {
				size += len(r)
			}
			list, readings, estimates = append(list, h), append(readings, read), append(estimates, estimate)
			return size, err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, count(ctx, side, op, list, readings, estimates)
}

// perTable is what a table or a column takes beside its texts, about.
const perTable = 64

// count counts rows by reading them. A count(*) must not be used: to plan a query, PostgreSQL may run functions of the
// customer's, as the agent. COPY plans nothing.
func count(
	ctx context.Context, side *archive.Side, op id.OperationID, list []recovery.Held, readings [][]string, estimates []int64,
) error {
	conn, err := side.Server.Connect(ctx, side.Database, op)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	counting, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	for i := range list {
		rows, err := counted(counting, conn, readings[i])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case counting.Err() != nil:
			list[i].Count = recovery.Count{Rows: estimates[i], Estimated: true}
		case err != nil:
			return err
		default:
			list[i].Rows = rows
		}
	}
	return nil
}

func counted(ctx context.Context, conn *pgconn.PgConn, readings []string) (rows int64, err error) {
	for _, reading := range readings {
		tag, err := conn.CopyTo(ctx, io.Discard, reading)
		if err != nil {
			return 0, err
		}
		rows += tag.RowsAffected()
	}
	return rows, nil
}
