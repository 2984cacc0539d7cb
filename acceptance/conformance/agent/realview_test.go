package agent_test

import (
	"context"
	"database/sql"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// realServer looks at a server as its superuser, and at its PgBouncer as a customer.
type realServer struct {
	t  *testing.T
	on *agenttest.Stack
}

func (s realServer) From() netip.Addr { return loopback }

func (s realServer) Databases() []string {
	return s.names(`SELECT datname FROM pg_database WHERE NOT datistemplate AND datname NOT IN ('postgres', 'pgherd_maintenance')`)
}

// Logins counts a role that may not log in at the moment too: it would be an orphan all the same.
func (s realServer) Logins() []string {
	return s.names(`SELECT rolname FROM pg_roles WHERE rolname !~ '^(pg_|postgres|pgherd_)'`)
}

func (s realServer) AddForeign(t *testing.T, name string) {
	t.Helper()
	clustertest.Exec(t, s.on.PG.URL("postgres"), `CREATE DATABASE "`+name+`"`)
}

func (s realServer) AccountOf(db id.DatabaseID) id.AccountID {
	s.t.Helper()
	maintenance, err := sql.Open("postgres", s.on.PG.URL(setup.MaintenanceDatabase))
	noError(s.t, err)
	defer maintenance.Close()
	var account id.AccountID
	noError(s.t, maintenance.QueryRow("SELECT account_id FROM ledger.database WHERE id = $1", string(db)).Scan(&account))
	return account
}

func (s realServer) names(query string) []string {
	s.t.Helper()
	db := must(sql.Open("postgres", s.on.PG.URL("postgres")))(s.t)
	defer db.Close()
	return must(stack.Column(context.Background(), db, query))(s.t)
}

// LogIn goes as far as a first query: only then PgBouncer has a connection to PostgreSQL.
func (s realServer) LogIn(database, username, password string) (conformance.CustomerSession, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, s.on.PooledURL(database, username, password))
	if err != nil {
		return nil, err
	}
	session := &realSession{conn}
	if err := session.query(ctx); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// realSession is one connection. It is of pgconn, which closes a connection when the time for a query is over: lib/pq would ask
// PgBouncer to cancel the query, and PgBouncer does not do that for a client that waits.
type realSession struct{ conn *pgconn.PgConn }

func (s *realSession) query(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "SELECT 1").ReadAll()
	return err
}

func (s *realSession) Alive() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.query(ctx) == nil
}

func (s *realSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // the server may have ended it
}
