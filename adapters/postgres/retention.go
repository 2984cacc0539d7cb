package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/ports"
)

// aged says of a kind where its entries are. Its index is by the column that says since when an entry is over, then by its ID.
type aged struct {
	kind            retention.Kind
	table, over, id string
	needed          string // in SQL, what package retention says of an entry e; the conformance suite compares the two
	with            string // a further part of the statement, which deletes what belongs to the entries
	forget          *pgdb.Statement
}

// resource is what the request of a key made: a database or an operation.
const resource = "CASE WHEN length(e.resource_id) = 36 THEN e.resource_id::uuid END"

// namer is a column that names operations: who has the row reads more of the operation than the column says. Where "by" is set,
// it is the column by which the rows of an operation's database are found.
type namer struct{ table, column, by string }

var operationNamers = []namer{
	{table: "backups", column: "operation_id"},
	{table: "uploads", column: "operation_id"},
	{table: "tombstones", column: "operation_id", by: "database_id"},
	{table: "tombstones", column: "recovery_id", by: "database_id"},
	{table: "databases", column: "timeout_operation", by: "id"},
}

// needsOperation is whether something else names the operation e; namedOperations are all that something names.
func needsOperation() string {
	parts := make([]string, 0, len(operationNamers))
	for _, n := range operationNamers {
		part := "EXISTS (SELECT FROM " + n.table + " n WHERE n." + n.column + " = e.id"
		if n.by != "" {
			part += " AND n." + n.by + " = e.database_id"
		}
		parts = append(parts, part+")")
	}
	return strings.Join(parts, " OR ")
}

func namedOperations() string {
	parts := make([]string, 0, len(operationNamers))
	for _, n := range operationNamers {
		parts = append(parts, "SELECT "+n.column+" FROM "+n.table+" WHERE "+n.column+" IS NOT NULL")
	}
	return strings.Join(parts, " UNION ALL ")
}

// agedKinds has those that package retention calls pruned.
var agedKinds = prepareAged(
	aged{
		kind: retention.Operations, table: "operations", over: "finished_at", id: "id",
		needed: needsOperation(),
		with:   ", uses AS (DELETE FROM operation_uses u WHERE u.operation_id = ANY (ARRAY(SELECT id FROM doomed)))",
	},
	aged{kind: retention.Audit, table: "audit_entries", over: "at", id: "id", needed: "false"},
	aged{
		kind: retention.Keys, table: "idempotency_keys", over: "created_at", id: "resource_id",
		needed: `EXISTS (SELECT FROM operations o WHERE o.database_id = ` + resource + ` AND o.` + open + `)
			OR EXISTS (SELECT FROM operations o WHERE o.id = ` + resource + ` AND o.` + open + `)`,
	},
	aged{kind: retention.Changes, table: "role_changes", over: "ended_at", id: "id", needed: "false"},
	aged{
		kind: retention.Usage, table: "usage_samples", over: "hour", id: "database_id", needed: "false",
		with: `, lines AS (DELETE FROM usage_lines WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM usage_lines WHERE month < $1::timestamptz - interval '744 hours' ORDER BY month LIMIT $4)))`,
	},
)

func prepareAged(list ...aged) []aged {
	for i, a := range list {
		list[i].forget = pgdb.Written(a.forgetting())
	}
	return list
}

// forgetting is the statement of Forget: $1 is the time before which entries were over, $2 and $3 the position to begin after, $4
// the limit. Entries that another process deletes at the moment count as looked at. An entry is found again by its place, as
// others may have its ID.
func (a *aged) forgetting() string {
	return strings.NewReplacer(
		"TABLE", a.table, "OVER", a.over, "ID", a.id, "NEEDED", a.needed, "WITH_THEM", a.with,
	).Replace(`
		WITH looked AS MATERIALIZED (
			SELECT e.ctid AS place, e.OVER AS since, e.ID AS id, (NEEDED) AS needed FROM TABLE e
			WHERE e.OVER < $1 AND (e.OVER, e.ID) > ($2, $3)
			ORDER BY e.OVER, e.ID LIMIT $4
		), doomed AS MATERIALIZED (
			SELECT e.ctid AS place, e.ID AS id FROM TABLE e
			WHERE e.ctid = ANY (ARRAY(SELECT place FROM looked WHERE NOT needed)) AND e.OVER < $1 FOR UPDATE SKIP LOCKED
		)WITH_THEM, gone AS (
			DELETE FROM TABLE e WHERE e.ctid = ANY (ARRAY(SELECT place FROM doomed)) AND e.OVER < $1 RETURNING 1
		)
		SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM gone) AS gone, last.since, last.id
		FROM (SELECT 1) always LEFT JOIN (SELECT since, id::text FROM looked l ORDER BY l.since DESC, l.id DESC LIMIT 1) last
			ON true`)
}

// storedKinds estimates the rows, so that it is cheap however many there are.
var storedKinds = pgdb.Written(func() string {
	parts := make([]string, 0, len(agedKinds)+1)
	add := func(k retention.Kind, table, over string) {
		parts = append(parts, fmt.Sprintf(`SELECT '%[1]s' AS kind, greatest(c.reltuples, 0)::bigint AS rows,
			pg_total_relation_size(c.oid) AS bytes, (SELECT min(e.%[3]s) FROM %[2]s e) AS oldest
			FROM pg_class c WHERE c.oid = '%[2]s'::regclass`, k, table, over))
	}
	for _, a := range agedKinds {
		add(a.kind, a.table, a.over)
	}
	add(retention.Deliveries, "webhook_deliveries", "finished_at")
	return strings.Join(parts, " UNION ALL ") + " ORDER BY kind"
}())

type ages struct{ pgdb.Session }

func (a ages) Forget(
	ctx context.Context, k retention.Kind, before time.Time, after *ports.Position, limit int,
) (f ports.Forgotten, err error) {
	if a.InView() {
		return f, ports.ErrReadOnly
	}
	for _, of := range agedKinds {
		if of.kind == k {
			return of.before(ctx, a.Session, before, after, limit)
		}
	}
	return f, fmt.Errorf("no entries are of the kind %q", k)
}

// readClock is the one statement that asks PostgreSQL for the time.
var readClock = pgdb.Written("SELECT clock_timestamp()")

func (a ages) Clock(ctx context.Context) (time.Time, error) {
	return pgdb.One[time.Time](ctx, a.Session, readClock)
}

// firstPosition is before all others.
var firstPosition = ports.Position{ID: "00000000-0000-0000-0000-000000000000"}

func (a *aged) before(
	ctx context.Context, s pgdb.Session, before time.Time, after *ports.Position, limit int,
) (f ports.Forgotten, err error) {
	if after == nil {
		after = &firstPosition
	}
	type row struct {
		Looked int        `db:"looked"`
		Gone   int        `db:"gone"`
		Since  *time.Time `db:"since"`
		ID     *string    `db:"id"`
	}
	got, err := pgdb.One[row](ctx, s, a.forget, before, after.At, after.ID, limit)
	f.Looked, f.Gone = got.Looked, got.Gone
	if got.Since != nil && got.ID != nil {
		f.Last = &ports.Position{At: *got.Since, ID: *got.ID}
	}
	return f, err
}

func (a ages) Stored(ctx context.Context) ([]ports.StoredKind, error) {
	return pgdb.All[ports.StoredKind](ctx, a.Session, storedKinds)
}
