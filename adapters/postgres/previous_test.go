package postgres_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// schemaAt is a new database with the migrations up to a version; 0: all of them.
func schemaAt(t *testing.T, version int64) *sql.DB {
	t.Helper()
	db := clustertest.NewDatabase(t).Open(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations")))(t)
	if version == 0 {
		check.Must(provider.Up(t.Context()))(t)
	} else {
		check.Must(provider.UpTo(t.Context(), version))(t)
	}
	return db
}

// TestPreviousStatements replays, on the schema of today, the statements of earlier versions: their hosts run on it during an
// upgrade. What a statement could do on the schema of its own version it can do on this one. The files are named for that
// schema and a commit; "make record-statements" writes them.
func TestPreviousStatements(t *testing.T) {
	files, err := filepath.Glob("testdata/statements/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			number, _, _ := strings.Cut(filepath.Base(file), "_")
			version := check.Must(strconv.ParseInt(number, 10, 64))(t)
			text := check.Must(os.ReadFile(file))(t)
			var statements map[string][][]any
			check.NoError(t, json.Unmarshal(text, &statements))
			replay(t, statements, schemaAt(t, version), schemaAt(t, 0))
		})
	}
}

func replay(t *testing.T, statements map[string][][]any, then, now *sql.DB) {
	worked := 0
	for text, sets := range statements {
		for _, arguments := range append(sets, nil) { // none: it is only prepared
			if try(t, then, text, arguments) != nil {
				continue // a refusal that a test wanted, or that comes of the rows that are not there
			}
			worked++
			if err := try(t, now, text, arguments); err != nil {
				t.Errorf("%s\nwith %s: %v", text, arguments, err)
			}
		}
	}
	if worked < 100 {
		t.Errorf("only %d statements worked on the schema of their own version", worked)
	}
}

// try runs a statement in a transaction of its own that leaves nothing behind. The rows that it refers to need not be there.
func try(t *testing.T, db *sql.DB, text string, arguments []any) error {
	t.Helper()
	tx := check.Must(db.Begin())(t)
	defer tx.Rollback()
	check.Must(tx.Exec("SET LOCAL session_replication_role = replica"))(t)
	statement, err := tx.Prepare(text)
	if err != nil || arguments == nil {
		return err
	}
	_, err = statement.Exec(arguments...)
	return err
}

// TestLaterColumnsHaveDefaults looks at every column that came later than its table: a host of the version before does not name
// it when it adds a row.
func TestLaterColumnsHaveDefaults(t *testing.T) {
	files := check.Must(filepath.Glob("migrations/*.sql"))(t)
	var before [][]string // the columns by version
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		version := check.Must(strconv.ParseInt(number, 10, 64))(t)
		before = append(before, columns(t, schemaAt(t, version), false))
	}
	for _, column := range columns(t, schemaAt(t, 0), true) {
		table, _, _ := strings.Cut(column, ".")
		ofTable := func(c string) bool { return strings.HasPrefix(c, table+".") }
		first := slices.IndexFunc(before, func(list []string) bool { return slices.ContainsFunc(list, ofTable) })
		if !slices.Contains(before[first], column) {
			t.Errorf("%s came after its table, and has neither a default nor null", column)
		}
	}
}

// columns are those of all tables, as table.column; or those that every row must be given a value of.
func columns(t *testing.T, db *sql.DB, required bool) (list []string) {
	t.Helper()
	const query = `SELECT c.table_name || '.' || c.column_name FROM information_schema.columns c
		JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.table_name <> 'goose_db_version'
		  AND (NOT $1 OR c.is_nullable = 'NO' AND c.column_default IS NULL AND c.is_generated = 'NEVER' AND c.is_identity = 'NO')`
	check.NoError(t, sqlx.NewDb(db, "postgres").Select(&list, query, required))
	return list
}
