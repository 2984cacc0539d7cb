package health

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

type dataFigures struct{ usedBytes, databases int64 }

func (c *Collector) connected(ctx context.Context) (struct{}, error) {
	if c.Answers != nil {
		return struct{}{}, c.Answers(ctx)
	}
	return struct{}{}, Answers(ctx, c.Maintenance)
}

// notInCharge is the ledger's answer to an agent that is not in charge of the server.
const notInCharge = "PGH01"

// Answers returns an error unless PostgreSQL answers, if only that this agent is not in charge.
func Answers(ctx context.Context, db *sql.DB) error {
	if err := db.PingContext(ctx); !Answered(err) {
		return err
	}
	return nil
}

// Answered reports whether what a question ended with is an answer of PostgreSQL's, if only that this agent is not in charge.
func Answered(err error) bool { return err == nil || pq.As(err, notInCharge) != nil }

// dataFigures counts the managed databases, which are those that the pooler's gate knows, and adds the sizes of all databases of
// the cluster, or those of a while ago. One that is out of service has another name.
func (c *Collector) dataFigures(ctx context.Context) (dataFigures, error) {
	c.mu.Lock()
	f, fresh := c.data.figures, time.Now().Before(c.data.until)
	c.mu.Unlock()
	err := c.Maintenance.QueryRowContext(ctx, `SELECT count(DISTINCT g.database) FROM pooler.gate g
		JOIN pg_catalog.pg_database d ON d.datname = g.database`).Scan(&f.databases)
	if err != nil || fresh {
		return f, err
	}
	if f.usedBytes, err = c.usedBytes(ctx); err != nil {
		return f, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.figures, c.data.until = f, time.Now().Add(dataTime)
	return f, nil
}

// usedBytes is repeated where a database is dropped in the middle, for which PostgreSQL reports an error.
func (c *Collector) usedBytes(ctx context.Context) (sum int64, err error) {
	for range 3 {
		err = c.Maintenance.QueryRowContext(ctx,
			`SELECT coalesce(sum(pg_catalog.pg_database_size(oid)), 0)::bigint FROM pg_catalog.pg_database`).Scan(&sum)
		if pq.As(err, pqerror.InvalidCatalogName) == nil {
			break
		}
	}
	return sum, err
}
