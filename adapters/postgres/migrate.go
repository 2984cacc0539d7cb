package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
)

// The errors of Open and Migrate if this program does not work with the schema.
var (
	ErrSchemaOlder = errors.New("the metadata database is older than this program: run pgherd migrate")
	ErrSchemaEmpty = errors.New("it is empty") // goes with ErrSchemaOlder
	ErrSchemaNewer = errors.New("the metadata database is too new for this program: run a newer program")
	// ErrSkipped is Migrate's where the schema would serve no host of the version that the metadata have now.
	ErrSkipped = errors.New("this program is too new for the hosts that work with the metadata database now: upgrade to a version " +
		"between the two first, or stop all hosts of the control plane and run pgherd migrate --hosts-stopped")
	// ErrSchemaUnreleased is a schema from before the first release, or from between two.
	ErrSchemaUnreleased = errors.New("the metadata database was made by a development version, and cannot be upgraded: " +
		"make a new one (make clean-dev deletes that of make run)")
)

// ErrLocked is the error of Migrate if it gave up on a lock.
var ErrLocked = errors.New("another session holds a lock that a migration needs: the migration is not done, those before it " +
	"are; run pgherd migrate again when that session's transaction has ended")

// lockTimeout bounds a migration's wait for one lock, because every host that needs the table waits behind it: it is below the
// time that hosts give a statement.
const lockTimeout = 5 * time.Second

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrate brings the schema to the version that this program knows. If several start at once, one does it under an advisory
// lock and the others wait. A newer schema stays as it is, and is ErrSchemaNewer where it does not serve this program. There are
// no down migrations.
// After ErrLocked, as after any other error, Migrate goes on with the first migration that is not done.
//
// Hosts work meanwhile: what would serve none of the version that the schema is of is ErrSkipped, and changes nothing.
// A migration is a transaction that keeps them from one table at most, so that the two wait for each other in no order of tables.
// An index of a table that grows is made by a migration of its own without a transaction, CONCURRENTLY. If that is interrupted,
// an index stays that is not valid: each such migration begins by dropping it.
func Migrate(ctx context.Context, url string) error {
	return migrateWith(ctx, url, migrationFiles, false)
}

// MigrateStopped is Migrate while no host runs, over any number of versions.
func MigrateStopped(ctx context.Context, url string) error {
	return migrateWith(ctx, url, migrationFiles, true)
}

func migrateWith(ctx context.Context, url string, files fs.FS, hostsStopped bool) error {
	c := Config{URL: url, StatementTimeout: time.Hour, IdleInTransaction: time.Hour, LockTimeout: lockTimeout}
	return pgdb.Alone(ctx, c, func(ctx context.Context, pool *sqlx.DB) error {
		err := checkSchema(ctx, pool, files)
		if !errors.Is(err, ErrSchemaOlder) {
			return err
		}
		if !hostsStopped {
			if err := checkHosts(ctx, pool, files); err != nil {
				return err
			}
		}
		return migrate(ctx, pool, files)
	})
}

// raises is how a migration says that the schema serves programs no longer that an earlier one has served.
var raises = regexp.MustCompile(`UPDATE oldest_program SET schema_version = (\d+)`)

// oldestServed is the oldest program that the schema serves with these migrations.
func oldestServed(files fs.FS) (oldest int64, err error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	for _, name := range names {
		text, readErr := fs.ReadFile(files, name)
		err = errors.Join(err, readErr)
		for _, found := range raises.FindAllSubmatch(text, -1) {
			version, numberErr := strconv.ParseInt(string(found[1]), 10, 64)
			oldest, err = max(oldest, version), errors.Join(err, numberErr)
		}
	}
	return oldest, err
}

// checkHosts refuses migrations that serve no host of the version that the schema has.
func checkHosts(ctx context.Context, db *sqlx.DB, files fs.FS) error {
	stored, _, err := storedSchema(ctx, db)
	if errors.Is(err, ErrSchemaEmpty) {
		return nil
	}
	oldest, readErr := oldestServed(files)
	if err := errors.Join(err, readErr); err != nil {
		return err
	}
	if stored < oldest {
		return fmt.Errorf("%w (version %d, and hosts from version %d on would be served)", ErrSkipped, stored, oldest)
	}
	return nil
}

func migrate(ctx context.Context, db *sqlx.DB, files fs.FS) error {
	provider, err := newProvider(db, files)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	if pq.As(err, pqerror.LockNotAvailable, pqerror.TRDeadlockDetected) != nil {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}

func newProvider(db *sqlx.DB, files fs.FS) (*goose.Provider, error) {
	const everySecond, forFiveMinutes = 1, 300
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(everySecond, forFiveMinutes))
	if err != nil {
		return nil, err
	}
	files, err = fs.Sub(files, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db.DB, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
}

// knownVersion is the newest migration of this program.
func knownVersion(db *sqlx.DB, files fs.FS) (int64, error) {
	provider, err := newProvider(db, files)
	if err != nil {
		return 0, err
	}
	sources := provider.ListSources()
	return sources[len(sources)-1].Version, nil
}

// checkSchema looks whether this program works with the stored schema. That may be newer: it says itself which programs it
// serves, so that a host can start again while its installation is being upgraded. checkSchema changes nothing.
func checkSchema(ctx context.Context, db *sqlx.DB, files fs.FS) error {
	known, err := knownVersion(db, files)
	if err != nil {
		return err
	}
	stored, oldest, err := storedSchema(ctx, db)
	switch {
	case err != nil:
		return err
	case stored < known:
		return fmt.Errorf("%w (version %d, known %d)", ErrSchemaOlder, stored, known)
	case oldest > known:
		return fmt.Errorf("%w (version %d serves programs from version %d on, known %d)", ErrSchemaNewer, stored, oldest, known)
	}
	return nil
}

// storedSchema is the version of the schema, and that of the oldest program that it serves.
func storedSchema(ctx context.Context, on sqlx.QueryerContext) (version, oldest int64, err error) {
	err = sqlx.GetContext(ctx, on, &version, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied")
	if pq.As(err, pqerror.UndefinedTable) != nil || err == nil && version == 0 {
		return 0, 0, fmt.Errorf("%w (%w)", ErrSchemaOlder, ErrSchemaEmpty)
	}
	if err == nil {
		err = sqlx.GetContext(ctx, on, &oldest, "SELECT schema_version FROM oldest_program")
	}
	if pq.As(err, pqerror.UndefinedTable) != nil {
		err = ErrSchemaUnreleased
	}
	return version, oldest, err
}
