package health

import (
	"context"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

type dataFigures struct{ usedBytes, databases int64 }

func (c *Collector) connected(ctx context.Context) (struct{}, error) {
	return struct{}{}, c.Maintenance.PingContext(ctx)
}

// dataFigures sums the sizes of all databases of the cluster; managed ones are those that the pooler's gate knows; one that
// is out of service has another name. If a database is dropped in the middle, PostgreSQL reports an error, and the query is
// repeated.
func (c *Collector) dataFigures(ctx context.Context) (f dataFigures, err error) {
	for range 3 {
		err = c.Maintenance.QueryRowContext(ctx, `
			SELECT (SELECT coalesce(sum(pg_catalog.pg_database_size(oid)), 0)::bigint FROM pg_catalog.pg_database),
			       (SELECT count(DISTINCT g.database) FROM pooler.gate g JOIN pg_catalog.pg_database d ON d.datname = g.database)`,
		).Scan(&f.usedBytes, &f.databases)
		if pq.As(err, pqerror.InvalidCatalogName) == nil {
			break
		}
	}
	return f, err
}
