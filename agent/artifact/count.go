package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/core/id"
)

// relation is a table or a sequence.
type relation struct {
	schema, name string
	column       string // the cheapest one to read; empty where there is none, or none that COPY takes
}

func (r relation) sql() string {
	return dumpsql.QuoteIdentifier(r.schema) + "." + dumpsql.QuoteIdentifier(r.name)
}

// reading is the COPY that sends one short line for each row of the table itself, not of its children.
//
// A count(*) would do the same in less time, and must not be used: to plan a query PostgreSQL evaluates the expressions of the
// table's indexes and statistics, and runs the functions in them as whoever asked, which is the agent. COPY plans nothing.
func (r relation) reading() string {
	if r.column == "" {
		return `COPY ` + r.sql() + ` TO STDOUT`
	}
	return `COPY ` + r.sql() + ` (` + dumpsql.QuoteIdentifier(r.column) + `) TO STDOUT`
}

// tables lists the tables whose rows a dump holds, with the column that is read to count them: of fixed length and short where
// there is one. COPY takes no generated columns.
func tables(ctx context.Context, q querier) ([]relation, error) {
	var list []relation
	const query = `SELECT n.nspname, c.relname, coalesce((SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0
			AND NOT attisdropped AND attgenerated = '' ORDER BY attlen < 0, attlen, attnum LIMIT 1), '')` +
		userTables + ` ORDER BY 1, 2`
	err := each(ctx, q, "tables", query, func(rows *sql.Rows) error {
		var r relation
		err := rows.Scan(&r.schema, &r.name, &r.column)
		list = append(list, r)
		return err
	})
	return list, err
}

// rowCounts counts the rows of each table. counted is told of the tables counted so far, of how many.
func rowCounts(
	ctx context.Context, conn *pgconn.PgConn, list []relation, counted func(done, total int),
) (map[string]int64, error) {
	counts := make(map[string]int64, len(list))
	for i, t := range list {
		tag, err := conn.CopyTo(ctx, io.Discard, t.reading())
		if err != nil {
			return nil, fmt.Errorf("count rows of %s: %w", t.sql(), err)
		}
		counts[dumpsql.QuoteName(t.schema, t.name)] = tag.RowsAffected()
		counted(i+1, len(list))
	}
	return counts, nil
}

// count counts in the exported snapshot, over a connection of the dump's login.
func (d pgDump) count(ctx context.Context, list []relation) (map[string]int64, error) {
	conn, err := d.cfg.dial(ctx, d.login.name(), d.login.password, d.database, map[string]string{
		"application_name": sessionName(d.op), "options": dumpOptions,
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '`+d.snapshot+`';
		`+joblogin.LockWithin(d.cfg.LockWait)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("count rows in the snapshot: %w", err)
	}
	return rowCounts(ctx, conn, list, func(int, int) {})
}

// connect opens one connection as the agent.
func (c *Config) connect(ctx context.Context, database string, op id.OperationID) (*pgconn.PgConn, error) {
	return c.dial(ctx, c.User, c.Password, database, map[string]string{
		"application_name": sessionName(op), "options": sessionOptions,
	})
}

// dial opens one connection, fenced like the others. Its errors hold no password.
func (c *Config) dial(
	ctx context.Context, user, password, database string, parameters map[string]string,
) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig("sslmode=" + c.SSLMode + " host=" + quoteSetting(c.Host) + " port=" + strconv.Itoa(c.Port) +
		" user=" + quoteSetting(user) + " dbname=" + quoteSetting(database))
	if err != nil {
		return nil, errors.New("connect: bad address")
	}
	cfg.Password, cfg.RuntimeParams = password, parameters
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := c.InCharge(ctx); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}
