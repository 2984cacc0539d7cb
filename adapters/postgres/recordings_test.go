package postgres_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
)

// statementSets are statements, each with sets of arguments.
type statementSets map[string][][]any

// TestStatementsOfReleases replays, on the schema of today, what hosts of earlier releases send: they go on while an upgrade
// replaces them. A file is named for the schema that its release knows, and for the release; "make record-statements" writes it,
// and it is deleted once the schema no longer serves that release.
func TestStatementsOfReleases(t *testing.T) {
	now := newest(t, postgres.Migrations)
	var oldest int64
	check.NoError(t, migrated(t).Open(t).QueryRow("SELECT schema_version FROM oldest_program").Scan(&oldest))
	for _, file := range check.Must(filepath.Glob("testdata/statements/*.json"))(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			version := versionOf(t, file)
			if version < oldest {
				t.Fatalf("the schema serves programs from version %d on: delete the file", oldest)
			}
			var recorded statementSets
			check.NoError(t, json.Unmarshal(check.Must(os.ReadFile(file))(t), &recorded))
			worked, broken := replay(t, recorded, schemaAt(t, postgres.Migrations, version), schemaAt(t, postgres.Migrations, now))
			if worked < 100 {
				t.Errorf("only %d statements worked on the schema of their own version", worked)
			}
			for _, fault := range broken {
				t.Error(fault)
			}
		})
	}
}

// A replay finds the statements that a later schema breaks, and those alone.
func TestReplay(t *testing.T) {
	recorded := statementSets{
		"SELECT name FROM users WHERE name = $1":               {{"x"}},
		"DELETE FROM features WHERE name = $1":                 {{"x"}, {nil}},
		"INSERT INTO switches (name, enabled) VALUES ($1, $2)": {{"x", "true"}, {"x", nil}}, // the second is refused
	}
	version := newest(t, postgres.Migrations)
	then := schemaAt(t, postgres.Migrations, version)
	files := later(t, "ALTER TABLE users RENAME name TO called", "ALTER TABLE switches ADD CHECK (NOT enabled)")
	worked, broken := replay(t, recorded, then, schemaAt(t, files, version+1))
	if all := strings.Join(broken, "\n"); worked != 7 || len(broken) != 3 || strings.Contains(all, "features") {
		t.Errorf("%d worked, broken are %s", worked, all)
	}
}

// replay runs statements on the schema of their time, and those that worked there on the one of now. What was refused there is a
// refusal that a test wanted, or comes of the rows that are not there.
func replay(t *testing.T, recorded statementSets, then, now *sql.DB) (worked int, broken []string) {
	t.Helper()
	for text, sets := range recorded {
		for _, arguments := range append(sets, nil) { // none: it is only prepared
			if try(t, then, text, arguments) != nil {
				continue
			}
			worked++
			if err := try(t, now, text, arguments); err != nil {
				broken = append(broken, fmt.Sprintf("%s\nwith %s: %v", text, arguments, err))
			}
		}
	}
	return worked, broken
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
