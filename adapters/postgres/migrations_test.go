package postgres_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// later are the migrations of this program and one more.
func later(t *testing.T, statements ...string) fs.FS {
	t.Helper()
	return laterThan(t, postgres.Migrations, statements...)
}

// laterThan adds a migration, without a transaction where it makes an index CONCURRENTLY.
func laterThan(t *testing.T, files fs.FS, statements ...string) fs.FS {
	t.Helper()
	more := fstest.MapFS{}
	for _, version := range versions(t, files) {
		name := check.Must(fs.Glob(files, fmt.Sprintf("migrations/%05d_*.sql", version)))(t)[0]
		more[name] = &fstest.MapFile{Data: check.Must(fs.ReadFile(files, name))(t)}
	}
	text := "-- +goose Up\n" + strings.Join(statements, ";\n") + ";\n"
	if strings.Contains(text, "CONCURRENTLY") {
		text = "-- +goose NO TRANSACTION\n" + text
	}
	more[fmt.Sprintf("migrations/%05d_later.sql", newest(t, files)+1)] = &fstest.MapFile{Data: []byte(text)}
	return more
}

// versions are those of the migrations, in their order.
func versions(t *testing.T, files fs.FS) (list []int64) {
	t.Helper()
	for _, name := range check.Must(fs.Glob(files, "migrations/*.sql"))(t) {
		list = append(list, versionOf(t, name))
	}
	return list
}

func newest(t *testing.T, files fs.FS) int64 {
	t.Helper()
	return slices.Max(versions(t, files))
}

// versionOf is the number that the name of a file begins with.
func versionOf(t *testing.T, name string) int64 {
	t.Helper()
	number, _, _ := strings.Cut(path.Base(name), "_")
	return check.Must(strconv.ParseInt(number, 10, 64))(t)
}

// schemaAt is a new database with the migrations up to a version.
func schemaAt(t *testing.T, files fs.FS, version int64) *sql.DB {
	t.Helper()
	db := clustertest.NewDatabase(t).Open(t)
	files = check.Must(fs.Sub(files, "migrations"))(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db, files))(t)
	check.Must(provider.UpTo(t.Context(), version))(t)
	return db
}

// TestLaterMigrations holds every migration after the first to the rules of docs/develop/releasing.md: hosts work while it runs,
// and those of the version before go on afterwards. Made-up migrations show that each rule is looked at.
func TestLaterMigrations(t *testing.T) {
	for _, fault := range faults(t, postgres.Migrations) {
		t.Error(fault)
	}
	made := map[string][]string{
		"":                          {"ALTER TABLE users ADD COLUMN nickname text", "CREATE TABLE nicknames (name text NOT NULL)"},
		"requires users.nickname":   {"ALTER TABLE users ADD COLUMN nickname text NOT NULL"},
		"locks api_keys servers":    {"ALTER TABLE servers ADD COLUMN x text", "ALTER TABLE api_keys ADD COLUMN x text"},
		"makes an index of mails":   {"CREATE INDEX mails_of_inviter ON mails (inviter)"},
		"locks databases users":     {"CREATE TABLE likes (who uuid REFERENCES users, what uuid REFERENCES databases)"},
		"serves programs from 2 on": {"UPDATE oldest_program SET schema_version = schema_version + 1"},
	}
	for want, statements := range made {
		if got := strings.Join(faults(t, later(t, statements...)), "; "); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", statements, got, want)
		}
	}
}

// grow are the tables whose indexes take long to make.
const grow = "'audit_entries', 'operations', 'idempotency_keys', 'role_changes', 'uploads', 'backups', 'outbox_events', " +
	"'webhook_deliveries', 'webhook_attempts', 'mails'"

// faults are what the migrations after the first do that they must not: they keep hosts from writing to more than one table in a
// transaction, keep them from writing while they make an index of a table that grows, make rows impossible that name the
// columns of before alone, or leave programs behind in other words than Migrate reads.
func faults(t *testing.T, files fs.FS) (list []string) {
	t.Helper()
	db := clustertest.NewDatabase(t)
	pool := db.Open(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, pool, check.Must(fs.Sub(files, "migrations"))(t)))(t)
	check.Must(provider.UpTo(t.Context(), 1))(t)
	clustertest.Exec(t, db.URL,
		"CREATE SCHEMA test",
		"CREATE TABLE test.of_hosts AS SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
		"CREATE TABLE test.locks (made text, name text)",
		`CREATE FUNCTION test.note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO test.locks (made, name) SELECT tg_tag, o.oid::regclass FROM pg_locks l JOIN test.of_hosts o ON o.oid = l.relation
				WHERE l.pid = pg_backend_pid()
				  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
		END $$`,
		"CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION test.note()")
	for _, version := range versions(t, files)[1:] {
		before := columns(t, pool)
		clustertest.Exec(t, db.URL, "TRUNCATE test.locks")
		check.Must(provider.UpTo(t.Context(), version))(t)
		for what, query := range map[string]string{
			"locks": "SELECT CASE WHEN count(DISTINCT name) > 1 THEN string_agg(DISTINCT name, ' ' ORDER BY name) END FROM test.locks",
			"makes an index of": "SELECT string_agg(DISTINCT name, ' ') FROM test.locks WHERE made = 'CREATE INDEX' AND name IN (" +
				grow + ")",
		} {
			var names sql.NullString
			check.NoError(t, pool.QueryRow(query).Scan(&names))
			if names.Valid {
				list = append(list, fmt.Sprintf("migration %d %s %s", version, what, names.String))
			}
		}
		for column, required := range columns(t, pool) {
			table, _, _ := strings.Cut(column, ".")
			ofTable := func(c string) bool { return strings.HasPrefix(c, table+".") }
			_, known := before[column]
			if required && !known && slices.ContainsFunc(slices.Collect(maps.Keys(before)), ofTable) {
				list = append(list, fmt.Sprintf("migration %d requires %s", version, column))
			}
		}
	}
	var oldest int64
	check.NoError(t, pool.QueryRow("SELECT schema_version FROM oldest_program").Scan(&oldest))
	if read := check.Must(postgres.OldestServed(files))(t); oldest != max(read, 1) {
		list = append(list, fmt.Sprintf("Migrate reads %d, and the schema serves programs from %d on", read, oldest))
	}
	return list
}

// columns are those of all tables, as table.column, and whether every row must be given a value of it.
func columns(t *testing.T, db *sql.DB) map[string]bool {
	t.Helper()
	var rows []struct {
		Name     string
		Required bool
	}
	const query = `SELECT c.table_name || '.' || c.column_name AS name,
			c.is_nullable = 'NO' AND c.column_default IS NULL AND c.is_generated = 'NEVER' AND c.is_identity = 'NO' AS required
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'`
	check.NoError(t, sqlx.NewDb(db, "postgres").Select(&rows, query))
	list := map[string]bool{}
	for _, row := range rows {
		list[row.Name] = row.Required
	}
	return list
}
