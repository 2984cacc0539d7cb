package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// idleAt is when nothing is due in the database of manyDatabases.
var idleAt = time.Date(2030, 1, 15, 0, 0, 0, 0, time.UTC)

// manyDatabases are 10,000 on two servers, of a hundred accounts: 2,000 are previews whose leases last, and 2,000 are deleted,
// half of which were previews. All have backups, scheduled ones too, and the operations that they came of.
func manyDatabases(t testing.TB) clustertest.Database {
	t.Helper()
	db := clustertest.NewDatabase(t)
	check.NoError(t, Migrate(t.Context(), db.URL))
	const at = "timestamptz '2030-01-15 00:00Z'"
	clustertest.Exec(t, db.URL,
		`CREATE FUNCTION pg_temp.made(kind text, n int) RETURNS uuid IMMUTABLE LANGUAGE sql AS 'SELECT md5(kind || n)::uuid'`,
		`INSERT INTO users (id, email, name, created_at)
			SELECT pg_temp.made('user', n), n || '@example.com', 'A', 'epoch' FROM generate_series(0, 99) n`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT pg_temp.made('account', n), pg_temp.made('user', n), 'business', 'epoch' FROM generate_series(0, 99) n`,
		`INSERT INTO servers (id, name, agent_url, sealed_secret, sealed_archive_key, ca, public_host, public_port,
				capacity, enabled, created_at)
			SELECT pg_temp.made('server', n), 's' || n, 'u', '', '', '', 'h', 1, 100000, true, 'epoch'
			FROM generate_series(0, 1) n`,
		`INSERT INTO ci_namespaces (id, account_id, name, created_at)
			SELECT pg_temp.made('namespace', n), pg_temp.made('account', n), 'main', 'epoch' FROM generate_series(0, 99) n`,
		fmt.Sprintf(`INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status,
				created_at, connection_cap, size_bytes, next_backup_at, next_reading_at, access_generation, allowlist_generation,
				allowlist_applied)
			SELECT pg_temp.made('database', n), pg_temp.made('account', n %% 100), pg_temp.made('server', n %% 2), 'n' || n, 'd',
				'managed', '', 'daily', CASE WHEN n < 8000 THEN 'active' ELSE 'deleted' END, 'epoch', 0, 0,
				%[1]s + CASE WHEN n < 8000 THEN '1h' ELSE '-3 days' END::interval, %[1]s + '1h'::interval, 0, 0, 0
			FROM generate_series(0, 9999) n`, at),
		fmt.Sprintf(`INSERT INTO previews (database_id, namespace_id, ref, use, ttl_hours, scheduled_backup, lease_status,
				lease_generation, expires_at, failures)
			SELECT pg_temp.made('database', n), pg_temp.made('namespace', n %% 100), 'pull/' || n, 1, 24, 'none',
				CASE WHEN n < 8000 THEN 'active' ELSE 'deleted' END, 1,
				%[1]s + CASE WHEN n < 8000 THEN '1h' ELSE '-3 days' END::interval, 0
			FROM generate_series(6000, 8999) n`, at),
		fmt.Sprintf(`INSERT INTO tombstones SELECT pg_temp.made('database', n), pg_temp.made('deletion', n), NULL, 'active',
				%[1]s - '3 days'::interval, %[1]s + '4 days'::interval, '20300112_000000.sql.gz', 'sum', 0, 0, 0
			FROM generate_series(8000, 9999) n`, at),
		fmt.Sprintf(`INSERT INTO backups (database_id, filename, operation_id, trigger, format, size_bytes, checksum_sha256, created_at,
				expires_at, role_manifest)
			SELECT pg_temp.made('database', n), '2030011' || b || '_000000.sql.gz',
				pg_temp.made('backup of ' || b, n), CASE WHEN b = 2 THEN 'deletion' ELSE 'scheduled' END, 'sql.gz', 1, 'sum',
				%[1]s - '10 days'::interval, CASE WHEN b < 2 THEN %[1]s + CASE WHEN n < 8000 THEN '1h' ELSE '-1h' END::interval END, true
			FROM generate_series(0, 9999) n, generate_series(0, 2) b WHERE b < 2 OR n >= 8000`, at),
		`INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress, input, result, error_code,
				error_text, actor, request_id, created_at, finished_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
			SELECT operation_id, d.account_id, d.id, d.server_id, 'backup', 'succeeded', 'done', 100, 'null', 'null', '', '', 'x', 'r',
				b.created_at, b.created_at, false, '', 0, 1, 'epoch' FROM backups b JOIN databases d ON d.id = b.database_id`,
		`INSERT INTO audit_entries (id, at, account_id, database_id, actor, action, details)
			SELECT id, created_at, account_id, database_id, 'x', 'backup.requested', '{}' FROM operations`,
		`INSERT INTO idempotency_keys SELECT account_id, 'POST /databases', id, 'f', id, created_at FROM operations`,
		fmt.Sprintf(`INSERT INTO api_keys (id, kind, account_id, user_id, namespace_id, trust_id, label, scope, hash, created_at,
				expires_at)
			SELECT lpad(n::text, 8, '0'), 'ci', pg_temp.made('account', n %% 100), pg_temp.made('user', n %% 100),
				pg_temp.made('namespace', n %% 100), pg_temp.made('trust', n), 'l', 'selected', sha256(n::text::bytea), 'epoch',
				%[1]s + '1h'::interval FROM generate_series(0, 1999) n`, at),
		fmt.Sprintf(`INSERT INTO ci_spent_tokens SELECT sha256(n::text::bytea), %[1]s + '1h'::interval
			FROM generate_series(0, 1999) n`, at),
		"UPDATE backups SET held = true WHERE database_id IN (SELECT database_id FROM tombstones)", // as Deletions.Add does
		"VACUUM ANALYZE")
	return db
}

// idleRound is a statement with its arguments.
type idleRound struct {
	statement *pgdb.Statement
	args      []any
}

// idleRounds are the statements of rounds that look for what is due, with their arguments when nothing is.
var idleRounds = map[string]idleRound{
	"leases that are over":   {leasesOver, []any{idleAt}},
	"previews to be deleted": {duePreviews, []any{idleAt, idleAt.Add(-time.Hour)}},
	"purges":                 {dueTombstones, []any{idleAt, 100}},
	"spent CI tokens":        {sweepTokens, []any{idleAt, 100}},
	"ended CI keys":          {sweepKeys, []any{idleAt, 100}},
	"daily backups":          {dueDatabases[ports.DueBackup], []any{idleAt, 100}},
	"readings of backups":    {dueDatabases[ports.DueReading], []any{idleAt, 100}},
	"allowlists":             {dueDatabases[ports.DueAllowlist], []any{idleAt, 100}},
	"settings":               {dueDatabases[ports.DueSettings], []any{idleAt, 100}},
	"expired backups":        {doomedBackups, []any{idleAt, 100}},
	"uploads":                {doomedUploads, []any{idleAt, 100}},

	"open operations":          {openOperations, nil},
	"pending changes":          {pendingChanges, nil},
	"leases that end":          {previewLeases, []any{idleAt, idleAt.Add(time.Minute)}},
	"backups that are overdue": {overdueBackups, []any{idleAt, idleAt.Add(-time.Hour)}},
	"deliveries that are due":  {dueDeliveries, []any{idleAt}},
	"events that wait":         {waitingEvents, nil},
	"mails that are due":       {dueMails, []any{idleAt}},
	"databases in error":       {databasesInError, nil},
	"databases over quota":     {overQuota, nil},

	"servers that have databases":    {serversInUse, nil},
	"servers whose usage is taken":   {usageServers, []any{time.Time{}}},
	"servers whose drills are due":   {dueDrills, []any{idleAt, time.Time{}}},
	"previews that are being ended":  {endingPreviews, nil},
	"forwards":                       {dueForwards, []any{idleAt}},
	"drains":                         {listDrains, []any{true}},
	"overdue invitations":            {overdueInvitations, []any{idleAt, 100}},
	"roles whose passwords are over": {expiringRoles, []any{idleAt, pgdb.Listed([]string{}), pgdb.Listed([]string{}), 100}},
	"old mails":                      {forgetMails, []any{idleAt.Add(-time.Hour), 100}},
	"old deliveries":                 {forgetDeliveries, []any{idleAt.Add(-time.Hour), 100}},
	"old events":                     {forgetEvents, []any{idleAt.Add(-time.Hour), 100}},
	"new events":                     {takeEvents, []any{100}},
	"old sessions":                   {forgetSessions, []any{idleAt, idleAt, 100}},
}

func init() {
	for _, a := range agedKinds {
		before := idleAt.Add(-a.kind.Bounds().Default)
		idleRounds["old "+string(a.kind)] = idleRound{a.forget, []any{before, firstPosition.At, firstPosition.ID, 500}}
	}
}

// explained is the plan of a statement that was executed.
type explained struct {
	Plan struct {
		Hit  int `json:"Shared Hit Blocks"`
		Read int `json:"Shared Read Blocks"`
		Rows int `json:"Actual Rows"`
	}
	Execution float64 `json:"Execution Time"`
}

// mostIdle is how many pages a round may look at that finds nothing to do: the few of an index's way down, and no more with ten
// times as many databases.
const mostIdle = 32

// A round that finds nothing to do looks at next to nothing.
func TestIdleRoundsLookAtLittle(t *testing.T) {
	pool := manyDatabases(t).Open(t)
	for what, r := range idleRounds {
		looksAtLittle(t, pool, what, r, mostIdle)
	}
}

// looksAtLittle demands that of a statement, however PostgreSQL plans: with what it is asked for, or without, as it may after a
// few executions.
func looksAtLittle(t *testing.T, pool *sql.DB, what string, r idleRound, most int) {
	t.Helper()
	conn := check.Must(pool.Conn(t.Context()))(t)
	defer conn.Close()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		check.Must(conn.ExecContext(t.Context(), "SET plan_cache_mode = "+mode))(t)
		tx := check.Must(conn.BeginTx(t.Context(), nil))(t)
		var text string
		query := tx.QueryRowContext(context.Background(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+r.statement.Text(), r.args...)
		check.NoError(t, query.Scan(&text))
		check.NoError(t, tx.Rollback())
		var plan []explained
		check.NoError(t, json.Unmarshal([]byte(text), &plan))
		pages := plan[0].Plan.Hit + plan[0].Plan.Read
		t.Logf("%s, %s: %d pages, %.3f ms", what, mode, pages, plan[0].Execution)
		if pages > most {
			t.Errorf("%s looks at %d pages with %s: %s", what, pages, mode, text)
		}
	}
}

// A claim looks at the lanes of the account whose turn it is, however many accounts wait, and lanes of theirs: when each was
// served at some time, and when none was yet.
func TestAClaimLooksAtFewLanes(t *testing.T) {
	db := manyDatabases(t)
	pool := db.Open(t)
	kinds := []string{}
	for n := range 50 {
		kinds = append(kinds, fmt.Sprint("kind", n))
	}
	dueNow := idleRound{dueLane, []any{idleAt, pgdb.Listed(kinds), pgdb.Listed([]string{}), pgdb.Listed([]string{})}}
	for what, turn := range map[string]string{"served": "row_number() OVER (ORDER BY id)", "new": "0"} {
		clustertest.Exec(t, db.URL,
			"TRUNCATE operation_accounts, operation_lanes",
			fmt.Sprintf(`INSERT INTO operation_accounts
				SELECT id, %s, 'epoch'::timestamptz + row_number() OVER (ORDER BY id) * interval '1 s' FROM accounts`, turn),
			`INSERT INTO operation_lanes
				SELECT a.account_id, s.id, 'kind' || n, timestamptz '2030-01-01 00:00Z' - n * interval '1 s', least(a.turn, n)
				FROM operation_accounts a, servers s, generate_series(0, 49) n ORDER BY 1, 2, 3`,
			"VACUUM ANALYZE operation_accounts, operation_lanes")
		looksAtLittle(t, pool, what, dueNow, 2*mostIdle) // all lanes are hundreds
	}
}

// A snapshot leaves operations alone that are long over and that nothing names: there are far more of them than of others. It
// finds those that something names from there, whatever the clock was by which that was made.
func TestSnapshotsLeaveOldOperationsAlone(t *testing.T) {
	db := manyDatabases(t)
	clustertest.Exec(t, db.URL,
		"DELETE FROM backups WHERE database_id NOT IN (SELECT id FROM databases ORDER BY id LIMIT 10)",
		`UPDATE backups SET created_at = created_at + interval '40 years'
			WHERE operation_id = (SELECT max(operation_id::text)::uuid FROM backups)`,
		"DELETE FROM tombstones", "VACUUM FULL ANALYZE backups", "VACUUM FULL ANALYZE tombstones")
	pool := db.Open(t)
	var text string
	query := pool.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+rowsOf("operations"), idleAt)
	check.NoError(t, query.Scan(&text))
	var plan []explained
	check.NoError(t, json.Unmarshal([]byte(text), &plan))
	var named, pages int
	check.NoError(t, pool.QueryRow("SELECT count(*) FROM operations WHERE id IN (SELECT operation_id FROM backups)").Scan(&named))
	check.NoError(t, pool.QueryRow("SELECT relpages FROM pg_class WHERE relname = 'databases'").Scan(&pages))
	looked := plan[0].Plan.Hit + plan[0].Plan.Read
	t.Logf("%d pages for %d operations, %.3f ms", looked, plan[0].Plan.Rows, plan[0].Execution)
	if plan[0].Plan.Rows != named {
		t.Errorf("%d operations, want the %d that are named", plan[0].Plan.Rows, named)
	}
	if most := pages + 10*named + 100; looked > most { // databases are read once, and each named one is looked up
		t.Errorf("%d pages, at most %d: %s", looked, most, text)
	}
}

// mostPagesOfOne is how many pages the age of a database's last backup may take: the way down an index, a row, and where there
// are several that do not count, these.
const mostPagesOfOne = 10

// The ages of all backups are read every ten minutes, for all databases. That is a look at each, and no more.
func TestBackupAgesLookAtTheLastBackups(t *testing.T) {
	pool := manyDatabases(t).Open(t)
	check.Must(pool.ExecContext(t.Context(), "UPDATE backups SET verified_at = created_at"))(t)
	check.Must(pool.ExecContext(t.Context(), "VACUUM ANALYZE backups"))(t)
	var text string
	query := pool.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+backupAges.Text(), "{free}")
	check.NoError(t, query.Scan(&text))
	var plan []explained
	check.NoError(t, json.Unmarshal([]byte(text), &plan))
	pages := plan[0].Plan.Hit + plan[0].Plan.Read
	t.Logf("%d pages, %.1f ms", pages, plan[0].Execution)
	if pages > 10_000*mostPagesOfOne {
		t.Errorf("%d pages: %s", pages, text)
	}
}
