package crash_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// world is a running stack with one host of each kind, and what a test looks at it with.
type world struct {
	*stack.Stack
	api, batch *stack.Host
	victim     *stack.Host // another API host, once a case has killed one
	agent      *stack.Process
	store      *objectstore.Server // where backups are; nil: in a folder of the agent's

	meta, server, maintenance, console *sql.DB // as their administrators

	foreign map[string]bool // databases and roles on the server that the test made itself

	unfinished map[id.RoleID]role.Status // roles that a case has left half made
}

func newWorld(t *testing.T, s *stack.Stack) *world {
	t.Helper()
	w := &world{Stack: s, agent: s.FirstAgent(), foreign: map[string]bool{}, unfinished: map[id.RoleID]role.Status{}}
	w.meta, w.server = stacktest.Open(t, s.MetadataURL()), stacktest.Open(t, s.Server.URL("postgres"))
	w.maintenance = stacktest.Open(t, s.Server.URL(setup.MaintenanceDatabase))
	dsn, err := s.ConsoleDSN()
	noError(t, err)
	w.console = must(sql.Open("postgres", dsn))(t)
	t.Cleanup(func() { _ = w.console.Close() }) // PgBouncer may have been killed
	ctx := soon(t)
	w.api = must(s.StartAPI(ctx, ""))(t)
	w.batch = must(s.StartBatch(ctx, ""))(t)
	return w
}

// user calls the API of any host with one key.
type user struct {
	stack.Account
	http *http.Client
}

var userNumber atomic.Int64

// newUser is the owner of a new account that may have so many databases.
func (w *world) newUser(t testing.TB, databases int) *user {
	t.Helper()
	name := fmt.Sprintf("owner-%d", userNumber.Add(1))
	a := must(w.NewAccount(soon(t), name, "business", databases))(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &user{Account: a, http: &http.Client{Transport: transport}}
}

// at is a client of a host that sends each request once: a case is about the answer to each.
func (u *user) at(host *stack.Host) *apiclient.Client {
	client, err := stack.Client(host.URL, u.Key, u.http)
	if err != nil {
		panic(err) // there is no such host
	}
	return client
}

// create makes a database that must come to be.
func (u *user) create(t testing.TB, host *stack.Host, name string) wire.CreatedDatabase {
	t.Helper()
	return must(u.at(host).Databases.Create(soon(t), wire.CreateDatabase{Name: name, DisplayName: name}))(t)
}

// customer opens one connection through the pooler, with TLS and the server's name checked.
func (w *world) customer(t testing.TB, connectionString string) *sql.DB {
	t.Helper()
	u := must(url.Parse(connectionString))(t)
	query := u.Query()
	if query.Get("sslmode") != "verify-full" {
		t.Fatalf("the connection string does not ask for verify-full: %s", u.Redacted())
	}
	query.Set("sslrootcert", w.CAFile())
	query.Set("connect_timeout", "10")
	u.RawQuery = query.Encode()
	return openOne(t, u.String())
}

// openOne opens at most one connection.
func openOne(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := must(sql.Open("postgres", dsn))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the connection may have been ended long ago
	return db
}

// logsIn fails the test unless the database lets its owner in.
func (w *world) logsIn(t testing.TB, d wire.CreatedDatabase) {
	t.Helper()
	var who, where string
	err := w.customer(t, d.ConnectionString).QueryRowContext(soon(t), "SELECT current_user, current_database()").Scan(&who, &where)
	if err != nil || who != d.Username || where != d.Name {
		t.Fatalf("logged in as %q at %q: %v", who, where, err)
	}
}

var nameNumber atomic.Int64

// newName is a name that no database of this run has.
func newName(prefix string) string { return fmt.Sprintf("%s-%d", prefix, nameNumber.Add(1)) }
