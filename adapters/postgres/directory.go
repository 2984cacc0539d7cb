package postgres

import (
	"context"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// The filters of a list are its first arguments: an empty text, or none in an array, matches everything.
var (
	// What an account uses is added up for the accounts of the page alone.
	listAccounts = pgdb.Written(fmt.Sprintf(`SELECT %s, t.email, t.name, d.databases, d.deleted, d.bytes, b.in_backups, k.keys
		FROM (SELECT a.*, u.email, u.name FROM accounts a JOIN users u ON u.id = a.owner_id
			WHERE ($1::text = '' OR a.id::text = $1) AND ($2::text = '' OR a.plan = $2)
				AND strpos(u.email, $3) > 0
				AND ($4::text = '' OR u.name = $4 AND strpos($4, '@') = 0 OR u.email = $4)
				AND (a.created_at, a.id) > ($5, $6)
			ORDER BY a.created_at, a.id LIMIT $7) t
		CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE %s) AS databases, count(*) FILTER (WHERE %s) AS deleted,
				coalesce(sum(d.size_bytes) FILTER (WHERE NOT %[3]s), 0)::bigint AS bytes
			FROM databases d WHERE d.account_id = t.id) d
		CROSS JOIN LATERAL (SELECT coalesce(sum(b.size_bytes), 0)::bigint AS in_backups
			FROM databases d JOIN backups b ON b.database_id = d.id AND %s WHERE d.account_id = t.id) b
		CROSS JOIN LATERAL (SELECT count(*) AS keys FROM api_keys k
			WHERE k.account_id = t.id AND k.kind = 'account' AND k.revoked_at IS NULL) k
		ORDER BY t.created_at, t.id`, accountTable.Row("t"), inService, "d."+gone, countedBackup))

	listDatabases = pgdb.Define(readDatabases().Columns("u.email", "s.name AS server").
			Column("ARRAY(SELECT e.route FROM enrolments e WHERE e.database_id = t.id ORDER BY e.route COLLATE \"C\") AS routes").
			Column("(SELECT coalesce(sum(b.size_bytes), 0)::bigint FROM backups b WHERE b.database_id = t.id AND "+countedBackup+
			") AS in_backups").
		Join("users u ON u.id = a.owner_id").
		JoinClause("CROSS JOIN (SELECT ?::text AS id, ?::text AS account, ?::text AS server, ?::text AS name, "+
			"?::text[] AS statuses, ?::text AS route) f").
		Where("(f.id = '' OR t.id::text = f.id) AND (f.account = '' OR t.account_id::text = f.account)").
		Where("(f.server = '' OR t.server_id::text = f.server) AND (f.name = '' OR t.name = f.name)").
		Where("(cardinality(f.statuses) = 0 OR t.status = ANY(f.statuses))").
		Where("(f.route = '' OR EXISTS (SELECT FROM enrolments e WHERE e.database_id = t.id AND f.route IN (e.route, '"+
			rollout.All+"')))").
		Where("(t.created_at, t.id) > (?, ?)").OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))

	listAllBackups = pgdb.Define(readBackups().
			Columns("d.name AS database", "d.status", "d.account_id", "u.email", "d.server_id", "s.name AS server").
			Join("databases d ON d.id = t.database_id").Join("servers s ON s.id = d.server_id").
			Join("accounts a ON a.id = d.account_id").Join("users u ON u.id = a.owner_id").
			JoinClause("CROSS JOIN (SELECT ?::text AS database, ?::text AS account, ?::boolean AS unverified) f").
			Where("(f.database = '' OR t.database_id = nullif(f.database, '')::uuid)").
			Where("(f.account = '' OR d.account_id = nullif(f.account, '')::uuid)").
			Where("(NOT f.unverified OR t.verified_at IS NULL) AND t.deleting_at IS NULL").
			Where("(t.created_at, t.operation_id) < (?, ?)").OrderBy("t.created_at DESC", "t.operation_id DESC").Suffix("LIMIT ?"))

	listAllNamespaces = pgdb.Define(namespaceTable.Read().Column("u.email").
				Join("accounts a ON a.id = t.account_id").Join("users u ON u.id = a.owner_id").
				JoinClause("CROSS JOIN (SELECT ?::text AS account, ?::text AS name) f").
				Where("(f.account = '' OR t.account_id::text = f.account) AND (f.name = '' OR t.name = f.name)").
				Where("(t.created_at, t.id) > (?, ?)").OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))

	listUsage = pgdb.Define(lineTable.Read().Column("u.email").
			Join("accounts a ON a.id = t.account_id").Join("users u ON u.id = a.owner_id").
			JoinClause("CROSS JOIN (SELECT ?::text AS account, ?::timestamptz AS month) f").
			Where("t.month = f.month AND (f.account = '' OR t.account_id = nullif(f.account, '')::uuid)").
			Where("(t.month, t.database_id) > (?, ?)").OrderBy("t.month", "t.database_id").Suffix("LIMIT ?"))

	countEnrolled = pgdb.Written("SELECT route, count(*) AS databases FROM enrolments GROUP BY route")
)

type directory struct{ pgdb.Session }

func (d directory) Accounts(ctx context.Context, of ports.AccountFilter, p ports.Page) ([]ports.AccountEntry, error) {
	return pgdb.PageOf[ports.AccountEntry](ctx, d.Session, listAccounts, pgdb.Forward, p, of.ID, of.Plan, of.Email, of.Owner)
}

func (d directory) Databases(ctx context.Context, of ports.DatabaseFilter, p ports.Page) ([]ports.DatabaseEntry, error) {
	type row struct {
		ports.DatabaseEntry
		Routes pq.StringArray `db:"routes"`
	}
	rows, err := pgdb.PageOf[row](ctx, d.Session, listDatabases, pgdb.Forward, p,
		of.ID, of.AccountID, of.ServerID, of.Name, pgdb.Listed(of.Statuses), of.Route)
	list := make([]ports.DatabaseEntry, len(rows))
	for i, r := range rows {
		list[i] = r.DatabaseEntry
		list[i].Enrolments = r.Routes
	}
	return list, err
}

func (d directory) Backups(ctx context.Context, of ports.BackupFilter, p ports.Page) ([]ports.BackupEntry, error) {
	return pgdb.PageOf[ports.BackupEntry](ctx, d.Session, listAllBackups, pgdb.Backward, p,
		of.DatabaseID, of.AccountID, of.Unverified)
}

func (d directory) Namespaces(ctx context.Context, of ports.NamespaceFilter, p ports.Page) ([]ports.NamespaceEntry, error) {
	return pgdb.PageOf[ports.NamespaceEntry](ctx, d.Session, listAllNamespaces, pgdb.Forward, p, of.AccountID, of.Name)
}

func (d directory) Usage(ctx context.Context, of ports.UsageFilter, p ports.Page) ([]ports.UsageEntry, error) {
	return pgdb.PageOf[ports.UsageEntry](ctx, d.Session, listUsage, pgdb.Forward, p, of.AccountID, of.Month)
}

func (d directory) Enrolled(ctx context.Context) (map[string]int, error) {
	type row struct {
		Route     string `db:"route"`
		Databases int    `db:"databases"`
	}
	rows, err := pgdb.All[row](ctx, d.Session, countEnrolled)
	of := make(map[string]int, len(rows))
	for _, r := range rows {
		of[r.Route] = r.Databases
	}
	return of, err
}
