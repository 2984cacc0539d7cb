package postgres_test

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestOpenRefusesAnEmptyDatabase(t *testing.T) {
	db := clustertest.NewDatabase(t)
	_, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL})
	if !errors.Is(err, postgres.ErrSchemaOlder) || !errors.Is(err, postgres.ErrSchemaEmpty) ||
		!strings.Contains(err.Error(), "pgherd migrate") {
		t.Errorf("opening an empty database: %v", err)
	}
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	db := migrated(t)
	clustertest.Exec(t, db.URL, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL}); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("opening a newer schema: %v", err)
	}
	if err := postgres.Migrate(t.Context(), db.URL); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("migrating a newer schema: %v", err)
	}
}

func TestMigrateByManyAtOnce(t *testing.T) {
	db := clustertest.NewDatabase(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := postgres.Migrate(t.Context(), db.URL); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var applied int
	row := db.Open(t).QueryRow("SELECT count(*) FROM goose_db_version WHERE version_id > 0")
	if err := row.Scan(&applied); err != nil || applied == 0 {
		t.Fatalf("%d migrations are recorded (%v)", applied, err)
	}
	var twice int
	row = db.Open(t).QueryRow(`SELECT count(*) FROM
		(SELECT FROM goose_db_version GROUP BY version_id HAVING count(*) > 1) d`)
	if err := row.Scan(&twice); err != nil || twice != 0 {
		t.Errorf("%d migrations were applied twice (%v)", twice, err)
	}
	open(t, db)
}

// TestMigrateGivesUpOnALock has a trigger that tells how long a migration waits for a lock, and then, with a URL that gives it
// less, a transaction that reads a table while it is migrated, as pg_dump does: a host that needs the table waits no longer than
// the migration, and the migrations go on when the transaction has ended.
func TestMigrateGivesUpOnALock(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 5))(t)
	clustertest.Exec(t, db.URL, `CREATE FUNCTION tell() RETURNS event_trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'it waits for %', current_setting('lock_timeout'); END $$`,
		"CREATE EVENT TRIGGER tell ON ddl_command_start EXECUTE FUNCTION tell()")
	if err := postgres.Migrate(t.Context(), db.URL); err == nil || !strings.Contains(err.Error(), "it waits for 5s") {
		t.Errorf("a migration's wait for a lock: %v", err)
	}
	clustertest.Exec(t, db.URL, "DROP EVENT TRIGGER tell")

	reader := check.Must(db.Open(t).Begin())(t)
	check.Must(reader.Exec("SELECT FROM operations"))(t)

	migrated := make(chan error, 1)
	go func() { migrated <- postgres.Migrate(t.Context(), db.URL+"&lock_timeout=500") }()
	awaitLockWait(t, db.Open(t))
	clustertest.Exec(t, db.URL, "SELECT FROM operations")
	if err := <-migrated; !errors.Is(err, postgres.ErrLocked) || !strings.Contains(err.Error(), "version:6") {
		t.Errorf("migrating beside a transaction that holds a lock: %v", err)
	}

	check.NoError(t, reader.Rollback())
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	open(t, db)
}

// TestAnInterruptedIndex has a transaction that began before an index is made, as pg_dump's: the index waits for its end, hosts
// write meanwhile, and what is left when the migration gives up is made anew.
func TestAnInterruptedIndex(t *testing.T) {
	db := clustertest.NewDatabase(t)
	pool := db.Open(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, pool, os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 25))(t)
	reader := check.Must(pool.Begin())(t)
	check.Must(reader.Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))(t)
	check.Must(reader.Exec("SELECT FROM users"))(t)

	migrated := make(chan error, 1)
	go func() { migrated <- postgres.Migrate(t.Context(), db.URL+"&lock_timeout=500") }()
	awaitLockWait(t, db.Open(t))
	clustertest.Exec(t, db.URL, `INSERT INTO audit_entries (id, at, actor, action, details)
		VALUES ('00000000-0000-4000-8000-000000000001', 'epoch', 'system', 'tested', '{}')`)
	if err := <-migrated; !errors.Is(err, postgres.ErrLocked) || !strings.Contains(err.Error(), "version:26") {
		t.Errorf("making an index beside a transaction that began before: %v", err)
	}
	left := func() (names string) {
		t.Helper()
		row := pool.QueryRow("SELECT coalesce(string_agg(indexrelid::regclass::text, ' '), '') FROM pg_index WHERE NOT indisvalid")
		check.NoError(t, row.Scan(&names))
		return names
	}
	if got := left(); got != "audit_entries_by_account" {
		t.Errorf("the indexes that are not valid: %q", got)
	}
	check.NoError(t, reader.Rollback())
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	if got := left(); got != "" {
		t.Errorf("afterwards %s is not valid", got)
	}
}

// TestMigrationsAreGentle looks at the locks of the migrations that follow the twenty-third, whose tables hosts use meanwhile: no
// transaction keeps hosts from writing to two of them, and none makes an index of one that grows.
func TestMigrationsAreGentle(t *testing.T) {
	db := clustertest.NewDatabase(t)
	pool := db.Open(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, pool, os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 23))(t)
	clustertest.Exec(t, db.URL,
		"CREATE TABLE of_hosts AS SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
		"CREATE TABLE locks (tx xid8 DEFAULT pg_current_xact_id(), made text, name text)",
		`CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO locks (made, name) SELECT tg_tag, o.oid::regclass FROM pg_locks l JOIN of_hosts o ON o.oid = l.relation
				WHERE l.pid = pg_backend_pid()
				  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
		END $$`,
		"CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note()")
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	for what, query := range map[string]string{
		"locked together": `SELECT string_agg(names, '; ') FROM (
			SELECT string_agg(DISTINCT name, ' ') AS names FROM locks GROUP BY tx HAVING count(DISTINCT name) > 1) t`,
		"locked while an index is made": `SELECT string_agg(DISTINCT name, ' ') FROM locks
			WHERE made = 'CREATE INDEX' AND name IN ('audit_entries', 'operations', 'idempotency_keys', 'role_changes', 'uploads',
				'outbox_events', 'webhook_deliveries', 'webhook_attempts', 'mails')`,
		"not locked, which were expected": `SELECT string_agg(name, ' ') FROM (VALUES ('servers'), ('api_keys'), ('databases')) v (name)
			WHERE name NOT IN (SELECT name FROM locks)`,
	} {
		var names sql.NullString
		check.NoError(t, pool.QueryRow(query).Scan(&names))
		if names.Valid {
			t.Errorf("%s: %s", what, names.String)
		}
	}
}

func TestErrorsHideThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://pgherd:s3cr3t@[::1/metadata", "postgres://pgherd:s3cr3t@127.0.0.1:1/metadata?sslmode=disable",
		"host=127.0.0.1 password='s3cr3t", "postgres://pgherd:s3cr3t@127.0.0.1:port/metadata",
	} {
		_, openErr := postgres.Open(t.Context(), postgres.Config{URL: url})
		notifier, notifierErr := postgres.NewNotifier(postgres.Config{URL: url})
		if notifierErr == nil {
			_ = notifier.Close()
		}
		for _, err := range []error{openErr, notifierErr, postgres.Migrate(t.Context(), url)} {
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the password is in %q", err)
			}
		}
		if openErr == nil {
			t.Errorf("%q was opened", url)
		}
	}
}
