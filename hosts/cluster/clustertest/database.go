package clustertest

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// Database is an empty database of the shared cluster, dropped when its test ends.
type Database struct {
	Name string
	// URL connects as the superuser.
	URL     string
	Cluster *cluster.Postgres
}

var databases atomic.Int64

// NewDatabase makes an empty database from template0.
func NewDatabase(t testing.TB) Database {
	t.Helper()
	pg := Postgres(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	Exec(t, pg.URL("postgres"), "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { Exec(t, pg.URL("postgres"), "DROP DATABASE "+name+" WITH (FORCE)") })
	return Database{Name: name, URL: pg.URL(name), Cluster: pg}
}

// Open returns a pool that is closed when the test ends.
func (d Database) Open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", d.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs statements over a connection of its own, and fails the test when one fails.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
