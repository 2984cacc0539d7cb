package pg_test

import (
	"database/sql"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// single is a pool of one connection: what does not give it back is stuck.
func single(t *testing.T) *sql.DB {
	t.Helper()
	db := clustertest.NewDatabase(t).Open(t)
	db.SetMaxOpenConns(1)
	return db
}

func TestInTransactionIsAllOrNothing(t *testing.T) {
	db := single(t)
	check.NoError(t, pg.InTransaction(t.Context(), db, `CREATE TABLE t (n text)`, `INSERT INTO t VALUES ('a')`))
	if err := pg.InTransaction(t.Context(), db, `INSERT INTO t VALUES ('b')`, `SELECT 1/0`); err == nil {
		t.Error("a statement that failed is no error")
	}
	if got, err := pg.Column(t.Context(), db, `SELECT n FROM t`); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestColumn(t *testing.T) {
	db := single(t)
	for query, want := range map[string][]string{
		`SELECT x FROM unnest($1::text[]) x ORDER BY 1 DESC`: {"b", "a"},
		`SELECT 'a' WHERE $1::text[] IS NULL`:                nil,
	} {
		if got, err := pg.Column(t.Context(), db, query, "{a,b}"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", query, got, err)
		}
	}
	for _, query := range []string{
		`SELEC 1`, `SELECT NULL`,
		`SELECT (10 / (3 - n))::text FROM generate_series(1, 3) n`, // fails after its first rows
	} {
		if got, err := pg.Column(t.Context(), db, query); err == nil {
			t.Errorf("%s: %v", query, got)
		}
	}
}

func TestEachStopsWhereScanFails(t *testing.T) {
	db, stop, seen := single(t), errors.New("stop"), 0
	for range 2 {
		err := pg.Each(t.Context(), db, func(*sql.Rows) error { seen++; return stop }, `SELECT generate_series(1, 3)`)
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	}
	if seen != 2 {
		t.Errorf("it saw %d rows", seen)
	}
}
