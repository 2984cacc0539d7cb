package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/audit"
)

// ErrNotEmpty is the error of Rebuild where the database is in use.
var ErrNotEmpty = errors.New("the metadata database is not empty: give a new one")

// Rebuilding is what an installation is made anew from.
type Rebuilding struct {
	Dump io.Reader
	// Details are those of its entry in the log of the installation.
	Details audit.Details
	At      time.Time
	// Crash is called at each of RebuildPoints; nil: nothing is.
	Crash func(point string)
}

// RebuildPoints are moments at which a process may end: what it has loaded is not there yet, and it is.
var RebuildPoints = []string{rebuildLoaded, rebuildDone}

const rebuildLoaded, rebuildDone = "rebuild.loaded", "rebuild.done"

// Rebuild makes the metadata of a database anew that has none: it may have the schema, or not even that. All is there afterwards,
// or nothing but the schema; then it can be done again. ErrNotEmpty, ErrSchemaNewer; ErrNoDump where the dump is not whole.
//
// What comes of it is as of the snapshot. So that servers obey again, operations that were open then get leases above all that
// anybody had since, and allowlists and settings are sent anew.
func Rebuild(ctx context.Context, c Config, from Rebuilding) (has Contents, err error) {
	if from.Crash == nil {
		from.Crash = func(string) {}
	}
	c.StatementTimeout, c.IdleInTransaction, c.LockTimeout = dumpTime, dumpTime, lockTimeout
	err = pgdb.Alone(ctx, c, func(ctx context.Context, pool *sqlx.DB) error {
		if err := wantEmpty(ctx, pool); err != nil {
			return err
		}
		has, err = rebuild(ctx, pool, from)
		return err
	})
	if err != nil {
		return Contents{}, err
	}
	return has, Migrate(ctx, c.URL)
}

// wantEmpty is ErrNotEmpty where a table has rows that the migrations did not make.
func wantEmpty(ctx context.Context, on sqlx.QueryerContext) error {
	_, _, err := storedSchema(ctx, on)
	if errors.Is(err, ErrSchemaEmpty) {
		var others int
		err = sqlx.GetContext(ctx, on, &others, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace "+
			"AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname <> 'goose_db_version'")
		if err == nil && others > 0 {
			err = fmt.Errorf("%w (it has tables that are not ours)", ErrNotEmpty)
		}
		return err
	}
	if err != nil {
		return err
	}
	tables, err := tablesOf(ctx, on)
	if err != nil {
		return err
	}
	for _, t := range tables {
		var has bool
		if t.name == madeByMigration {
			continue
		}
		if err := sqlx.GetContext(ctx, on, &has, "SELECT EXISTS (SELECT FROM "+pq.QuoteIdentifier(t.name)+")"); err != nil {
			return err
		}
		if has {
			return fmt.Errorf("%w (there are rows in %s)", ErrNotEmpty, t.name)
		}
	}
	return nil
}

// madeByMigration has a row that the snapshot's takes the place of.
const madeByMigration = "installation"

// migrateTo brings an empty database to the schema of a snapshot.
func migrateTo(ctx context.Context, pool *sqlx.DB, files fs.FS, version int64) error {
	known, err := knownVersion(pool, files)
	if err != nil {
		return err
	}
	if version > known {
		return fmt.Errorf("%w: the snapshot has version %d, known is %d", ErrSchemaNewer, version, known)
	}
	stored, _, err := storedSchema(ctx, pool)
	switch {
	case err == nil && stored > version:
		return fmt.Errorf("the metadata database has the schema %d, and the snapshot %d: give a database without any", stored, version)
	case err != nil && !errors.Is(err, ErrSchemaEmpty):
		return err
	}
	provider, err := newProvider(pool, files)
	if err == nil {
		_, err = provider.UpTo(ctx, version)
	}
	return err
}

func rebuild(ctx context.Context, pool *sqlx.DB, from Rebuilding) (has Contents, err error) {
	l := &loader{pool: pool}
	defer func() {
		if l.tx != nil {
			_ = l.tx.Rollback() // it was committed, or its own error adds nothing
		}
	}()
	if has, err = eachDumped(from.Dump, func(v dumped) error { return l.load(ctx, v) }); err != nil {
		return has, err
	}
	if missing := slices.DeleteFunc(l.tables, func(t table) bool { return l.loaded[t.name] }); len(missing) > 0 {
		return has, fmt.Errorf("%w: it has no %s", ErrNoDump, missing[0].name)
	}
	if err := l.afterwards(ctx, from); err != nil {
		return has, err
	}
	from.Crash(rebuildLoaded)
	err = l.tx.Commit()
	from.Crash(rebuildDone)
	return has, err
}

// loader loads a dump in one transaction, which it begins when it knows the schema.
type loader struct {
	pool   *sqlx.DB
	tx     *sqlx.Tx
	tables []table
	loaded map[string]bool
	insert string // into the table that is being loaded
	added  int64
}

func (l *loader) load(ctx context.Context, v dumped) error {
	switch {
	case v.Schema > 0:
		return l.begin(ctx, v.Schema)
	case v.Table != "":
		return l.table(ctx, v)
	case v.Rows != nil:
		done, err := l.tx.ExecContext(ctx, l.insert, pq.StringArray(v.Rows))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		l.added += n
		return err
	case v.Count != nil && *v.Count != l.added:
		return fmt.Errorf("%d rows were added of %d", l.added, *v.Count)
	case v.Sequence != "":
		_, err := l.tx.ExecContext(ctx, "SELECT setval($1::text::regclass, $2, $3)", pq.QuoteIdentifier(v.Sequence), v.Value, v.Called)
		return err
	}
	return nil
}

func (l *loader) begin(ctx context.Context, version int64) (err error) {
	if err = migrateTo(ctx, l.pool, migrationFiles, version); err != nil {
		return err
	}
	if l.tx, err = l.pool.BeginTxx(ctx, nil); err != nil {
		return err
	}
	if l.tables, err = tablesOf(ctx, l.tx); err != nil {
		return err
	}
	l.loaded = map[string]bool{}
	// Hosts that were started too early wait, and find the metadata as they are then.
	var names []string
	for _, t := range l.tables {
		names = append(names, pq.QuoteIdentifier(t.name))
	}
	if _, err = l.tx.ExecContext(ctx, "LOCK TABLE "+strings.Join(names, ", ")+" IN SHARE ROW EXCLUSIVE MODE"); err == nil {
		err = wantEmpty(ctx, l.tx)
	}
	if err == nil {
		_, err = l.tx.ExecContext(ctx, "DELETE FROM "+madeByMigration)
	}
	return err
}

func (l *loader) table(_ context.Context, v dumped) error {
	at := slices.IndexFunc(l.tables, func(t table) bool { return t.name == v.Table })
	if at < 0 || l.loaded[v.Table] || !slices.Equal(l.tables[at].columns, v.Columns) {
		return fmt.Errorf("%w: this program has another table %q", ErrNoDump, v.Table)
	}
	name, columns, fields := pq.QuoteIdentifier(v.Table), make([]string, len(v.Columns)), make([]string, len(v.Columns))
	for i, c := range v.Columns {
		columns[i], fields[i] = pq.QuoteIdentifier(c), "(q.row)."+pq.QuoteIdentifier(c)
	}
	l.loaded[v.Table], l.added = true, 0
	l.insert = fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[3]s "+
		"FROM (SELECT text::%[1]s AS row FROM unnest($1::text[]) text OFFSET 0) q", // each row is read once, not for each field
		name, strings.Join(columns, ", "), strings.Join(fields, ", "))
	return nil
}

// epochs is more leases than an operation gets in the time between a snapshot and a loss.
const epochs = 1 << 20

// afterwards makes metadata that went back safe to go on with.
func (l *loader) afterwards(ctx context.Context, from Rebuilding) error {
	details, err := json.Marshal(from.Details)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{"UPDATE databases SET allowlist_generation = allowlist_generation + 1, settings_generation = settings_generation + 1", nil},
		{"UPDATE operations SET lease_epoch = lease_epoch + $1, lease_owner = '', lease_until = NULL WHERE finished_at IS NULL",
			[]any{epochs}},
		{"INSERT INTO audit_entries (id, at, actor, action, details) VALUES (gen_random_uuid(), $1, $2, $3, $4)",
			[]any{from.At, audit.Operator.Name, string(audit.MetadataRebuilt), string(details)}},
	} {
		if _, err := l.tx.ExecContext(ctx, step.statement, step.args...); err != nil {
			return err
		}
	}
	return nil
}
