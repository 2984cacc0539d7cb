package postgres

import (
	"context"
	"fmt"
	"time"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	databaseTable = pgdb.TableOf[database.Record]("databases",
		"host", "port", "account_plan", "account_database_bytes", "suspended_at", "suspended_for", "namespace_id").
		WithOptional("timeout_operation", "overlay_id").Added().
		Saved([]string{"id"}, []string{
			"display_name", "environment", "schedule", "status", "connection_cap", "size_bytes", "sized_at", "next_backup_at",
			"postgres_version", "way_back",
			"next_reading_at", "schedule_since",
			"access_generation", "allowlist_generation", "allowlist_applied",
			"role_generation", "role_ordinal", "roles_barred",
			"settings_generation", "settings_applied", "timeout_profile", "timeout_effective", "timeout_operation", "storage_status",
			"storage_ceiling", "overlay_id", "overlay_status", "overlay_generation",
		})
)

// readDatabases begins a SELECT of records, with what is known of them by their servers and accounts.
func readDatabases() sq.SelectBuilder {
	return databaseTable.Read().Columns("s.public_host AS host", "s.public_port AS port").
		Columns("a.plan AS account_plan", "a.database_bytes AS account_database_bytes", "a.suspended_at", "a.suspended_for").
		Column("coalesce(p.namespace_id::text, '') AS namespace_id").
		Join("servers s ON s.id = t.server_id").Join("accounts a ON a.id = t.account_id").
		LeftJoin("previews p ON p.database_id = t.id")
}

// orNull is an identifier as an argument, null where it is empty.
func orNull[T ~string](id T) any {
	if id == "" {
		return nil
	}
	return id
}

// sessionOpen takes the session.
const sessionOpen = "EXISTS (SELECT FROM sessions p WHERE p.id = ?::uuid AND p.status = 'open')"

// The columns of database.Ties. They take the key, the session, the key, the user and the account.
const (
	tieKeyValid = "EXISTS (SELECT FROM api_keys k WHERE k.id = ? AND k.revoked_at IS NULL) AS key_valid"
	tieSession  = sessionOpen + " AS session_open"
	tieBound    = "EXISTS (SELECT FROM key_databases b WHERE b.key_id = ? AND b.database_id = t.id) AS bound"
	tieMember   = "coalesce((SELECT m.role FROM memberships m WHERE m.database_id = t.id AND m.user_id = ?::uuid), '') AS member"
	tieOwn      = "coalesce((SELECT v.suspended_for FROM accounts v WHERE v.id = ?::uuid), '') AS own_suspended_for"
)

var (
	getDatabase = pgdb.Define(readDatabases().Where("t.id = ?"))
	// A key of the whole account, or of a namespace, has no other ties that count.
	tiedDatabase     = pgdb.Define(readDatabases().Column(tieKeyValid).Where("t.id = ?"))
	selectedDatabase = pgdb.Define(readDatabases().Column(tieKeyValid).Column(tieBound).Column(tieMember).Column(tieOwn).
				Where("t.id = ?"))
	sharedDatabase = pgdb.Define(readDatabases().Column(tieSession).Column(tieMember).Column(tieOwn).Where("t.id = ?"))
	allTied        = pgdb.Define(readDatabases().Column(tieKeyValid).Column(tieSession).Column(tieBound).Column(tieMember).
			Column(tieOwn).Where("t.id = ANY(?)"))
	waysBack = pgdb.Define(readDatabases().Where("t.way_back = ? AND t.way_back > 0 AND NOT t." + gone).
			OrderBy("t.id").Suffix("LIMIT ?"))
	lockDatabase   = pgdb.Define(readDatabases().Where("t.id = ?").Suffix("FOR NO KEY UPDATE OF t"))
	countDatabases = pgdb.Written("SELECT count(*) FROM databases d WHERE account_id = $1 AND " + inService)
	removeDatabase = pgdb.Written(`
		WITH forgotten AS (DELETE FROM idempotency_keys WHERE resource_id = $1::text)
		DELETE FROM databases WHERE id = $1::text::uuid`)

	dueDatabases = map[ports.DueWork]*pgdb.Statement{
		ports.DueBackup: pgdb.Define(readDatabases().Where("t.next_backup_at <= ? AND t.status IN ('active', 'stopped')").
			Where(`NOT EXISTS (SELECT FROM operations o
				WHERE o.database_id = t.id AND NOT o.logins AND o.status IN ('queued', 'running'))`).
			OrderBy("t.next_backup_at", "t.id").Suffix("LIMIT ?")),
		ports.DueReading: pgdb.Define(readDatabases().Where("t.next_reading_at <= ? AND t.status NOT IN ('creating', 'purging')").
			OrderBy("t.next_reading_at", "t.id").Suffix("LIMIT ?")),
		ports.DueAllowlist: pgdb.Define(readDatabases().Where("t.allowlist_applied < t.allowlist_generation").
			Where("t.status IN ('active', 'stopped') AND ?::timestamptz IS NOT NULL").OrderBy("t.id").Suffix("LIMIT ?")),
		ports.DueSettings: pgdb.Define(readDatabases().Where("t.settings_applied < t.settings_generation").
			Where("(t.status IN ('active', 'stopped') OR t.status = 'error' AND a.suspended_at IS NOT NULL)").
			Where("?::timestamptz IS NOT NULL").OrderBy("t.id").Suffix("LIMIT ?")),
	}
)

type databases struct{ pgdb.Rows[database.Record] }

func (d databases) Get(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return d.One(ctx, getDatabase, db)
}

// Tied reads by primary key alone: what the viewer may see is decided in the core.
func (d databases) Tied(
	ctx context.Context, v database.Viewer, db id.DatabaseID,
) (database.Record, database.Ties, error) {
	statement, args := tiedDatabase, []any{v.KeyID, db}
	switch {
	case v.IsPerson():
		statement, args = sharedDatabase, []any{v.SessionID, orNull(v.UserID), orNull(v.AccountID), db}
	case v.Selects():
		statement, args = selectedDatabase, []any{v.KeyID, v.KeyID, orNull(v.UserID), orNull(v.AccountID), db}
	}
	row, err := pgdb.One[database.Tied](ctx, d.Session, statement, args...)
	return row.Record, row.Ties, err
}

func (d databases) AllTied(ctx context.Context, v database.Viewer, list []id.DatabaseID) ([]database.Tied, error) {
	return pgdb.All[database.Tied](ctx, d.Session, allTied,
		v.KeyID, orNull(v.SessionID), v.KeyID, orNull(v.UserID), orNull(v.AccountID), pgdb.Listed(list))
}

func (d databases) Lock(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return d.Locked(ctx, lockDatabase, db)
}

func (d databases) Count(ctx context.Context, of id.AccountID) (int, error) {
	return pgdb.One[int](ctx, d.Session, countDatabases, of)
}

// Remove also deletes logins, roles and their changes, allowlist, memberships, key bindings, enrolments and the tombstone; audit
// entries and operations stay.
func (d databases) Remove(ctx context.Context, db id.DatabaseID) error {
	return d.MustChange(ctx, ports.ErrNoRow, removeDatabase, db)
}

func (d databases) WaysBack(ctx context.Context, version, limit int) ([]database.Record, error) {
	return d.All(ctx, waysBack, version, limit)
}

func (d databases) Due(ctx context.Context, what ports.DueWork, now time.Time, limit int) ([]database.Record, error) {
	st, ok := dueDatabases[what]
	if !ok {
		return nil, fmt.Errorf("nothing is known to be due as %q", what)
	}
	return d.All(ctx, st, now, limit)
}
