package agenttest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Stack is a real PostgreSQL that agent init has prepared, a real PgBouncer, and what an agent for them must be told.
type Stack struct {
	PG      *cluster.Postgres
	Bouncer *cluster.Pooler
	Config  agent.Config
	pair    cluster.Certificate // the agent's
	ca      *cluster.CA
	Client  *http.Client
	Super   *sql.DB // maintenance database
}

const Secret = "a-secret-of-the-tests"

var shared struct {
	once  sync.Once
	stack *Stack
}

// Shared gives all tests the same servers, with an agent in this process. It ends with the test binary.
func Shared(t testing.TB) *Stack {
	t.Helper()
	shared.once.Do(func() {
		dir := check.Must(os.MkdirTemp("", "pgherd-agent-"))(t)
		s := New(t, clustertest.Postgres(t), dir)
		s.Started(context.Background(), t)
		s.StartBouncer(context.Background(), t)
		check.NoError(t, cluster.CheckPooler(context.Background(), s.Console(t)))
		shared.stack = s
	})
	if shared.stack == nil {
		t.Fatal("the servers did not start; see the first test")
	}
	return shared.stack
}

// Own is a stack of the test's own, without an agent.
func Own(t testing.TB) *Stack {
	t.Helper()
	return New(t, clustertest.New(t, nil), t.TempDir())
}

// New is a stack on a server, with its files in a folder, without an agent.
func New(t testing.TB, pg *cluster.Postgres, dir string) *Stack {
	t.Helper()
	s := &Stack{PG: pg}
	tools := check.Must(toolchain.Find())(t)
	s.ca = check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	agentPair := check.Must(s.ca.Issue("agent", "127.0.0.1"))(t)
	poolerPair := check.Must(s.ca.Issue("pooler", "localhost", "127.0.0.1"))(t)
	set := pooler.DefaultSettings()
	set.Dir, set.SocketDir = filepath.Join(dir, "pooler"), check.Must(cluster.SocketDir(filepath.Join(dir, "sock")))(t)
	set.ListenPort = check.Must(cluster.FreePort("127.0.0.1"))(t)
	set.TLSCertFile, set.TLSKeyFile = poolerPair.CertFile, poolerPair.KeyFile
	s.pair = agentPair
	s.Config = agent.Config{
		Listen:          "127.0.0.1:" + strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t)),
		Certificate:     check.Must(certfile.Open("agent", agentPair.CertFile, agentPair.KeyFile))(t).Certificate,
		Secrets:         secrets,
		CredentialsFile: filepath.Join(dir, "credentials.json"),
		PostgresHost:    pg.Host(), PostgresPort: pg.Port(), Pooler: set,
		BackupDir: filepath.Join(dir, "backups"), PgDump: tools.PgDump, DataDir: dir, Version: "test",
		BackupPause: 100 * time.Millisecond,
		Versions:    floors.Policy{Development: true}, Languages: floors.Policy{Development: true},
	}
	s.prepare(t, nil)
	s.Super = check.Must(sql.Open("postgres", pg.URL(setup.MaintenanceDatabase)))(t)
	s.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots(t)}}}
	return s
}

// GiveSockets lets PgBouncer connect to sockets of the agent's, also where the tests run as root.
func (s *Stack) GiveSockets(t testing.TB) {
	t.Helper()
	uid, gid, switched, err := cluster.ChildUser()
	check.NoError(t, err)
	if switched {
		s.Config.PoolerOwner = &pooler.Owner{UID: uid, GID: gid}
	}
}

// prepare runs agent init.
func (s *Stack) prepare(t testing.TB, archive *setup.Archive) {
	t.Helper()
	check.Must(setup.Init(t.Context(), setup.Options{
		DSN: s.PG.URL("postgres"), CredentialsFile: s.Config.CredentialsFile, Versions: s.Config.Versions,
		Languages: s.Config.Languages, Archive: archive,
	}))(t)
}

// CA is the certificate of who issues those of the agent and of PgBouncer.
func (s *Stack) CA(t testing.TB) string {
	t.Helper()
	return string(check.Must(os.ReadFile(s.ca.CertFile()))(t))
}

func (s *Stack) roots(t testing.TB) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(s.CA(t))) {
		t.Fatal("no certificate")
	}
	return pool
}

// Run runs an agent in this process until ctx ends, and returns it with its log. Its error comes when it ends.
func (s *Stack) Run(ctx context.Context, t testing.TB) (*agent.Agent, *observer.ObservedLogs, <-chan error) {
	t.Helper()
	// An agent before it has closed the port. A program that was being started just then may have it for a moment longer.
	var l net.Listener
	check.Eventually(t, "the agent's port is taken", func() bool {
		var err error
		l, err = net.Listen("tcp", s.Config.Listen)
		return err == nil
	})
	core, log := observer.New(zap.InfoLevel)
	a := check.Must(agent.New(s.Config, agent.Deps{Log: zap.New(core), Listener: l}))(t)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return a, log, ended
}

// Started is run for an agent that must come to be in charge; this waits for that.
func (s *Stack) Started(ctx context.Context, t testing.TB) (*agent.Agent, *observer.ObservedLogs, <-chan error) {
	t.Helper()
	a, log, ended := s.Run(ctx, t)
	select {
	case <-a.Started():
	case err := <-ended:
		t.Fatal("the agent ended: ", err)
	case <-time.After(check.Patience):
		t.Fatal("the agent is not in charge")
	}
	return a, log, ended
}

// StartBouncer starts PgBouncer, whose files an agent has written.
func (s *Stack) StartBouncer(ctx context.Context, t testing.TB) {
	t.Helper()
	s.Bouncer = check.Must(cluster.RunPooler(ctx, cluster.PoolerOptions{
		Ini: pooler.ConfigFile(s.Config.Pooler.Dir), Host: "127.0.0.1", Port: s.Config.Pooler.ListenPort,
	}))(t)
}

// Start starts an agent and PgBouncer, which end with the test.
func (s *Stack) Start(t testing.TB) *Stack {
	t.Helper()
	s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	return s
}

// Console is PgBouncer's admin console.
func (s *Stack) Console(t testing.TB) *sql.DB {
	t.Helper()
	secrets := check.Must(setup.ReadCredentials(s.Config.CredentialsFile))(t)
	return Open(t, fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname=pgbouncer sslmode=disable",
		s.Config.Pooler.SocketDir, s.Config.Pooler.ListenPort, setup.PoolerAdmin, secrets.PoolerAdminPassword))
}

// Pooled opens a pool of one connection through PgBouncer with TLS, as a customer does.
func (s *Stack) Pooled(t testing.TB, entry, login, password string) *sql.DB {
	t.Helper()
	return Open(t, s.PooledURL(entry, login, password))
}

// PooledURL is the URL of Pooled.
func (s *Stack) PooledURL(entry, login, password string) string {
	u := url.URL{
		Scheme: "postgresql", User: url.UserPassword(login, password), Path: "/" + entry,
		Host:     "localhost:" + strconv.Itoa(s.Config.Pooler.ListenPort),
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.ca.CertFile()}, "connect_timeout": {"10"}}.Encode(),
	}
	return u.String()
}

// Direct opens a pool of one connection to PostgreSQL itself.
func (s *Stack) Direct(t testing.TB, database, login, password string) *sql.DB {
	t.Helper()
	return Open(t, s.PG.URLFor(login, password, database))
}

// Open opens a pool of one connection.
func Open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := check.Must(sql.Open("postgres", dsn))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// One runs a query for one text as the superuser in the maintenance database.
func (s *Stack) One(t testing.TB, query string, args ...any) string {
	t.Helper()
	var text string
	check.NoError(t, s.Super.QueryRowContext(t.Context(), query, args...).Scan(&text), query)
	return text
}

// Works fails the test where a connection cannot run a query.
func Works(t testing.TB, what string, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Refused fails the test where a statement succeeds.
func Refused(t testing.TB, what string, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err == nil {
		t.Errorf("%s: %s succeeded", what, statement)
	}
}

// SQLState is the SQLSTATE of an error; empty where it has none.
func SQLState(err error) string {
	if p := pq.As(err); p != nil {
		return string(p.Code)
	}
	return ""
}
