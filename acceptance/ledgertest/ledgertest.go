// Package ledgertest makes the agent's ledger for tests.
package ledgertest

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// New returns a maintenance database as agent init makes it, on a server of its own.
func New(t *testing.T) *sql.DB {
	t.Helper()
	_, db, _ := NewOn(t)
	return db
}

// NewOn is New that returns the server too, and the password of the agent's login there.
func NewOn(t *testing.T) (server *cluster.Postgres, db *sql.DB, password string) {
	t.Helper()
	server = clustertest.New(t, nil)
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	check.Must(setup.Init(t.Context(), setup.Options{
		DSN: server.URL("postgres"), CredentialsFile: credentials,
		Versions: floors.Policy{Development: true}, Languages: floors.Policy{Development: true},
	}))(t)
	db = clustertest.Database{URL: server.URL(setup.MaintenanceDatabase)}.Open(t)
	return server, db, check.Must(setup.ReadCredentials(credentials))(t).AgentPassword
}

// Exec runs a statement.
func Exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// ID is that of the database that Enter enters.
const ID = "d"

// Enter enters the database that db is connected to into its ledger, with an owner and other logins, login_00 and so on.
func Enter(t *testing.T, db *sql.DB, logins int) (name string, oid uint32) {
	t.Helper()
	name = check.Must(pg.One[string](t.Context(), db, "SELECT current_database()"))(t)
	oid = check.Must(pg.One[uint32](t.Context(), db, "SELECT oid FROM pg_database WHERE datname = current_database()"))(t)
	Exec(t, db, `INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, oid, backup_key)
		VALUES ($1, $2, 'managed', 0, '', $3, decode(repeat('6b', 32), 'hex'))`, ID, name, oid)
	enter := func(login, part string) {
		Exec(t, db, "CREATE ROLE "+pq.QuoteIdentifier(login))
		Exec(t, db, `INSERT INTO ledger.role (name, oid, database_id, part)
			SELECT rolname, oid, $2, $3 FROM pg_roles WHERE rolname = $1`, login, ID, part)
	}
	enter(name, "owner")
	for i := range logins {
		enter(fmt.Sprintf("login_%02d", i), "additional")
	}
	return name, oid
}
