package inventory

import (
	"context"
	"database/sql"
	"regexp"
	"slices"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// madeByAgent is a mark that every role bears that the agent has made, whatever its name: PostgreSQL has given the agent the
// right to pass it on. What comes with PostgreSQL begins with pg_.
const madeByAgent = `r.rolname !~ '^pg_' AND EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles a ON a.oid = m.member
	WHERE m.roleid = r.oid AND m.admin_option AND a.rolname = current_user)`

// The shapes of names that the agent gives, and nobody else.
const (
	databaseShape = `^(tmp|verify|restore|qualify|replaced|deleted)_[0-9a-f]{32}$`
	roleShape     = `^(pgh_[0-9a-f]{32}_(rt|ro|gro|grw|holder|c[0-9]+|l[0-9]+)|pgh_dead_[0-9a-f]{32}|` +
		`(verify|restore|qualify|dump|ext|move)_[0-9a-f]{32})$`
)

// strayDatabases are those that neither a database nor a copy of the ledger is, nor what a copy has replaced, nor what is being
// made. The holder of one marks it.
const strayDatabases = `SELECT p.datname, pg_get_userbyid(p.datdba),
		p.datdba = current_user::regrole OR EXISTS (SELECT FROM pg_roles r WHERE r.oid = p.datdba AND ` + madeByAgent + `)
	FROM pg_database p
	WHERE p.datname <> current_database() AND NOT p.datistemplate
	  AND (p.datname ~ '` + databaseShape + `' OR p.datdba = current_user::regrole
		OR EXISTS (SELECT FROM pg_roles r WHERE r.oid = p.datdba AND ` + madeByAgent + `))
	  AND NOT EXISTS (SELECT FROM ledger.database d WHERE d.oid = p.oid)
	  AND NOT EXISTS (SELECT FROM ledger.database d WHERE d.oid IS NULL
		AND p.datname = 'tmp_' || replace(d.made_by, '-', ''))
	  AND NOT EXISTS (SELECT FROM ledger.copy c WHERE c.name = p.datname OR c.replaced = p.oid)
	ORDER BY 1 LIMIT $1`

const strayRoles = `SELECT r.rolname, ` + madeByAgent + ` FROM pg_roles r
	WHERE (r.rolname ~ '` + roleShape + `' OR ` + madeByAgent + `)
	  AND NOT EXISTS (SELECT FROM ledger.role l WHERE l.oid = r.oid)
	  AND NOT EXISTS (SELECT FROM ledger.dead_role l WHERE l.oid = r.oid)
	  AND NOT EXISTS (SELECT FROM ledger.copy c WHERE c.name = r.rolname)
	ORDER BY 1 LIMIT $1`

// Only work that has no result yet counts: what is done is remembered for a while.
const (
	copiesQuery = `SELECT c.name, c.purpose, c.operation_id, c.database_id, c.until_closed AND EXISTS (
			SELECT FROM ledger.operation o WHERE o.id = c.operation_id AND NOT o.closed) FROM ledger.copy c ORDER BY 1 LIMIT $1`
	jobsQuery = `SELECT j.operation_id, j.step, j.database_id FROM ledger.job j JOIN ledger.operation o ON o.id = j.operation_id
		WHERE NOT o.closed AND NOT EXISTS (SELECT FROM ledger.command c
			WHERE c.operation_id = j.operation_id AND c.step = j.step AND c.result IS NOT NULL) ORDER BY 1, 2 LIMIT $1`
	forwardsQuery   = `SELECT database_id, database, host, port, until FROM pooler.forward ORDER BY 1 LIMIT $1`
	operationsQuery = `SELECT id, epoch, closed, greatest(0, extract(epoch FROM clock_timestamp() - spoken_at))::bigint
		FROM ledger.operation WHERE id = ANY ($1) ORDER BY 1`
)

// Strays answers with what there is beside the databases of the ledger.
func (l *Lister) Strays(ctx context.Context, _ command.AskStrays) (command.Strays, error) {
	found, err := atOnce(ctx, l, readStrays)
	if err != nil {
		return found, err
	}
	for i, f := range found.Forwards {
		found.Forwards[i].Failure = l.failure(f.Name)
	}
	found.Pooler, err = inTurn(ctx, l, l.poolerDifferences)
	found.Cut = found.Cut || len(found.Pooler) > command.StraysAtOnce
	found.Pooler = found.Pooler[:min(len(found.Pooler), command.StraysAtOnce)]
	return found, err
}

func (l *Lister) poolerDifferences(ctx context.Context) ([]command.PoolerDifference, error) {
	// What PgBouncer has not been told yet is no difference. If it cannot be told, that shows.
	soon, cancel := context.WithTimeout(ctx, pooler.SoonTime)
	_ = l.pooler.SyncCollected(soon, l.wanted)
	cancel()
	s, err := l.wanted(ctx)
	if err != nil {
		return nil, err
	}
	return l.pooler.Differences(ctx, s)
}

func readStrays(ctx context.Context, tx *sql.Tx) (found command.Strays, err error) {
	for _, read := range []func() (full bool, err error){
		func() (bool, error) { return listed(ctx, tx, &found.Databases, scanStrayDatabase, strayDatabases) },
		func() (bool, error) { return listed(ctx, tx, &found.Roles, scanStrayRole, strayRoles) },
		func() (bool, error) {
			return listed(ctx, tx, &found.Copies, func(rows *sql.Rows) (c command.InventoryCopy, err error) {
				return c, rows.Scan(&c.Name, &c.Purpose, &c.OperationID, &c.DatabaseID, &c.Wanted)
			}, copiesQuery)
		},
		func() (bool, error) {
			return listed(ctx, tx, &found.Jobs, func(rows *sql.Rows) (j command.InventoryJob, err error) {
				return j, rows.Scan(&j.OperationID, &j.Step, &j.DatabaseID)
			}, jobsQuery)
		},
		func() (bool, error) {
			return listed(ctx, tx, &found.Forwards, func(rows *sql.Rows) (f command.InventoryForward, err error) {
				return f, rows.Scan(&f.DatabaseID, &f.Name, &f.Host, &f.Port, &f.Until)
			}, forwardsQuery)
		},
	} {
		full, err := read()
		if err != nil {
			return found, err
		}
		found.Cut = found.Cut || full
	}
	err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var o command.InventoryOperation
		err := rows.Scan(&o.OperationID, &o.Epoch, &o.Closed, &o.SilentS)
		found.Operations = append(found.Operations, o)
		return err
	}, operationsQuery, named(found))
	return found, err
}

// listed reads a list, and reports whether there may be more.
func listed[T any](
	ctx context.Context, tx *sql.Tx, list *[]T, scan func(*sql.Rows) (T, error), query string,
) (full bool, err error) {
	err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
		one, err := scan(rows)
		*list = append(*list, one)
		return err
	}, query, command.StraysAtOnce)
	return len(*list) == command.StraysAtOnce, err
}

func scanStrayDatabase(rows *sql.Rows) (d command.StrayDatabase, err error) {
	err = rows.Scan(&d.Name, &d.Owner, &d.Marked)
	d.OperationID = operationIn(d.Name)
	return d, err
}

func scanStrayRole(rows *sql.Rows) (r command.StrayRole, err error) {
	err = rows.Scan(&r.Name, &r.Marked)
	r.OperationID = operationIn(r.Name)
	if digits := ofDatabase.FindStringSubmatch(r.Name); digits != nil {
		r.DatabaseID = id.DatabaseID(hyphens(digits[1]))
	}
	return r, err
}

var (
	ofOperation = regexp.MustCompile(`^(?:tmp|verify|restore|qualify|replaced|dump|ext|move)_([0-9a-f]{32})$`)
	ofDatabase  = regexp.MustCompile(`^pgh_([0-9a-f]{32})_`)
)

// operationIn is the operation that a name is made of; empty where it is none such.
func operationIn(name string) id.OperationID {
	if digits := ofOperation.FindStringSubmatch(name); digits != nil {
		return id.OperationID(hyphens(digits[1]))
	}
	return ""
}

func hyphens(s string) string {
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// named are the operations that are named.
func named(s command.Strays) pq.StringArray {
	var all []string
	for _, d := range s.Databases {
		all = append(all, string(d.OperationID))
	}
	for _, r := range s.Roles {
		all = append(all, string(r.OperationID))
	}
	for _, c := range s.Copies {
		all = append(all, string(c.OperationID))
	}
	for _, j := range s.Jobs {
		all = append(all, string(j.OperationID))
	}
	slices.Sort(all)
	return append(pq.StringArray{}, slices.Compact(all)...)
}
