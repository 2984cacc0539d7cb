package clustertest

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/acceptance/check"
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
	return Copy(t, "template0")
}

// Copy makes a database that has all of another one, in which nobody is. Without fsync, to copy its files is faster than to log
// their pages.
func Copy(t testing.TB, template string) Database {
	t.Helper()
	pg := Postgres(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	Exec(t, pg.URL("postgres"), "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY FILE_COPY")
	t.Cleanup(func() { Exec(t, pg.URL("postgres"), "DROP DATABASE "+name+" WITH (FORCE)") })
	return Database{Name: name, URL: pg.URL(name), Cluster: pg}
}

// Open returns a pool that is closed when the test ends.
func (d Database) Open(t testing.TB) *sql.DB {
	t.Helper()
	db := check.Must(sql.Open("postgres", d.URL))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs statements over a connection of its own, and fails the test when one fails.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	db := check.Must(sql.Open("postgres", url))(t)
	defer db.Close()
	for _, statement := range statements {
		_, err := db.Exec(statement)
		check.NoError(t, err, statement)
	}
}
