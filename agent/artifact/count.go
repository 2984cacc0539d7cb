package artifact

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/core/id"
)

// relation is a table or a sequence.
type relation struct {
	schema, name string
	columns      []string // that COPY takes: those that are not generated
	cheapest     string   // the one to read where any will do; empty where there is none
	root         string   // the table into which a dump loads the rows, where that is not the table itself
}

func (r relation) sql() string {
	return dumpsql.QuoteIdentifier(r.schema) + "." + dumpsql.QuoteIdentifier(r.name)
}

// loaded is the quoted name of the table into which a dump loads the rows.
func (r relation) loaded() string { return cmp.Or(r.root, r.quoted()) }

// quoted is the name of the relation itself, as a dump writes it.
func (r relation) quoted() string { return dumpsql.QuoteName(r.schema, r.name) }

// reading is the COPY that sends one line for each row of the table itself, not of its children.
//
// A count(*) would count in less time, and must not be used: to plan a query PostgreSQL evaluates the expressions of the table's
// indexes and statistics, and runs the functions in them as whoever asked, which is the agent. COPY plans nothing.
func (r relation) reading(columns ...string) string {
	if len(columns) == 0 {
		return `COPY ` + r.sql() + ` TO STDOUT`
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = dumpsql.QuoteIdentifier(c)
	}
	return `COPY ` + r.sql() + ` (` + strings.Join(quoted, ", ") + `) TO STDOUT`
}

// counting is the reading that only counts.
func (r relation) counting() string {
	if r.cheapest == "" {
		return r.reading()
	}
	return r.reading(r.cheapest)
}

//go:embed tables.sql
var readTables string

// tables lists the tables whose rows a dump holds.
func tables(ctx context.Context, q querier) ([]relation, error) {
	var list []relation
	err := each(ctx, q, "tables", readTables, func(rows *sql.Rows) error {
		var r relation
		var rootSchema, root string
		err := rows.Scan(&r.schema, &r.name, pq.Array(&r.columns), &r.cheapest, &rootSchema, &root)
		if root != "" {
			r.root = dumpsql.QuoteName(rootSchema, root)
		}
		list = append(list, r)
		return err
	})
	return list, err
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
	out, err := copyout.New(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	counted := newContents(nil)
	for _, t := range list {
		if err := readTable(ctx, out, t, counted); err != nil {
			return nil, err
		}
	}
	return counted.rows, nil
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
	parameters["client_encoding"] = "UTF8" // names are compared with those of other sessions
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
