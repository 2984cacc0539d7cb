package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

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

// A schema says which programs it serves: a host of the version before starts on a newer one until that leaves it behind.
func TestASchemaServesOlderPrograms(t *testing.T) {
	db := migrated(t)
	refused := func(program string, err error) {
		t.Helper()
		if !errors.Is(err, postgres.ErrSchemaNewer) {
			t.Errorf("%s: %v", program, err)
		}
	}
	wider := later(t, "ALTER TABLE users ADD COLUMN nickname text")
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, wider))
	open(t, db)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL)) // there is nothing to do

	narrower := laterThan(t, wider, fmt.Sprintf("UPDATE oldest_program SET schema_version = %d", newest(t, wider)))
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, narrower))
	_, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL})
	refused("opened by the oldest program", err)
	refused("migrated by the oldest program", postgres.Migrate(t.Context(), db.URL))
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, wider))
}

// An upgrade over versions that the schema serves no longer would leave the hosts behind that run.
func TestAnUpgradeThatSkipsIsRefused(t *testing.T) {
	db := migrated(t)
	was := newest(t, postgres.Migrations)
	wider := later(t, "ALTER TABLE users ADD COLUMN nickname text")
	narrower := laterThan(t, wider, fmt.Sprintf("UPDATE oldest_program SET schema_version = %d", newest(t, wider)))
	err := postgres.MigrateWith(t.Context(), db.URL, narrower)
	if !errors.Is(err, postgres.ErrSkipped) || !strings.Contains(err.Error(), fmt.Sprintf("version %d,", was)) {
		t.Errorf("migrated over a version: %v", err)
	}
	open(t, db) // nothing has changed
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, wider))
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, narrower))

	check.NoError(t, postgres.MigrateWith(t.Context(), clustertest.NewDatabase(t).URL, narrower)) // a new installation has no hosts
	check.NoError(t, postgres.MigrateStoppedWith(t.Context(), migrated(t).URL, narrower))
}

// Before the first release there were first one migration and then 38. None said which programs the schema serves.
func TestASchemaOfBeforeTheFirstReleaseIsRefused(t *testing.T) {
	for _, version := range []int{1, 38} {
		db := clustertest.NewDatabase(t)
		clustertest.Exec(t, db.URL, "CREATE TABLE users (id uuid PRIMARY KEY)",
			"CREATE TABLE goose_db_version (id serial, version_id bigint, is_applied boolean, tstamp timestamp DEFAULT now())",
			fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true), (%d, true)", version))
		_, openErr := postgres.Open(t.Context(), postgres.Config{URL: db.URL})
		for _, err := range []error{openErr, postgres.Migrate(t.Context(), db.URL)} {
			if !errors.Is(err, postgres.ErrSchemaUnreleased) || !strings.Contains(err.Error(), "make clean-dev") {
				t.Errorf("version %d: %v", version, err)
			}
		}
	}
}

// Until it is released, the schema of a version changes: what a program of before has made is refused by the same words.
func TestASchemaThatHasChangedSinceIsRefused(t *testing.T) {
	for _, change := range []string{"DROP TABLE sessions", "ALTER TABLE users DROP COLUMN name"} {
		db := clustertest.NewDatabase(t)
		check.NoError(t, postgres.Migrate(t.Context(), db.URL))
		clustertest.Exec(t, db.URL, change)
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL}); !errors.Is(err, postgres.ErrSchemaUnreleased) {
			t.Errorf("after %s: %v", change, err)
		}
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
	db := migrated(t)
	files := later(t, "ALTER TABLE operations ADD COLUMN colour text")
	clustertest.Exec(t, db.URL, `CREATE FUNCTION tell() RETURNS event_trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'it waits for %', current_setting('lock_timeout'); END $$`,
		"CREATE EVENT TRIGGER tell ON ddl_command_start EXECUTE FUNCTION tell()")
	err := postgres.MigrateWith(t.Context(), db.URL, files)
	if err == nil || !strings.Contains(err.Error(), "it waits for 5s") {
		t.Errorf("a migration's wait for a lock: %v", err)
	}
	clustertest.Exec(t, db.URL, "DROP EVENT TRIGGER tell")

	reader := check.Must(db.Open(t).Begin())(t)
	check.Must(reader.Exec("SELECT FROM operations"))(t)

	migrated := make(chan error, 1)
	go func() { migrated <- postgres.MigrateWith(t.Context(), db.URL+"&lock_timeout=500", files) }()
	awaitLockWait(t, db.Open(t))
	clustertest.Exec(t, db.URL, "SELECT FROM operations")
	if err := <-migrated; !errors.Is(err, postgres.ErrLocked) {
		t.Errorf("migrating beside a transaction that holds a lock: %v", err)
	}

	check.NoError(t, reader.Rollback())
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, files))
	check.Must(db.Open(t).Exec("SELECT colour FROM operations"))(t)
}

// TestAnInterruptedIndex has a transaction that began before an index is made, as pg_dump's: the index waits for its end, hosts
// write meanwhile, and what is left when the migration gives up is made anew.
func TestAnInterruptedIndex(t *testing.T) {
	db := migrated(t)
	files := later(t, "DROP INDEX CONCURRENTLY IF EXISTS audit_entries_by_actor",
		"CREATE INDEX CONCURRENTLY audit_entries_by_actor ON audit_entries (actor)")
	pool := db.Open(t)
	reader := check.Must(pool.Begin())(t)
	check.Must(reader.Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))(t)
	check.Must(reader.Exec("SELECT FROM users"))(t)

	migrated := make(chan error, 1)
	go func() { migrated <- postgres.MigrateWith(t.Context(), db.URL+"&lock_timeout=500", files) }()
	awaitLockWait(t, db.Open(t))
	clustertest.Exec(t, db.URL, `INSERT INTO audit_entries (id, at, actor, action, details)
		VALUES ('00000000-0000-4000-8000-000000000001', 'epoch', 'system', 'tested', '{}')`)
	if err := <-migrated; !errors.Is(err, postgres.ErrLocked) {
		t.Errorf("making an index beside a transaction that began before: %v", err)
	}
	left := func() (names string) {
		t.Helper()
		row := pool.QueryRow("SELECT coalesce(string_agg(indexrelid::regclass::text, ' '), '') FROM pg_index WHERE NOT indisvalid")
		check.NoError(t, row.Scan(&names))
		return names
	}
	if got := left(); got != "audit_entries_by_actor" {
		t.Errorf("the indexes that are not valid: %q", got)
	}
	check.NoError(t, reader.Rollback())
	check.NoError(t, postgres.MigrateWith(t.Context(), db.URL, files))
	if got := left(); got != "" {
		t.Errorf("afterwards %s is not valid", got)
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
