package agent_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
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
	"github.com/pgherd/pgherd/agent/languages"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/versions"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// stack is a real PostgreSQL that agent init has prepared, a real PgBouncer, and what an agent for them must be told.
type stack struct {
	pg      *cluster.Postgres
	bouncer *cluster.Pooler
	config  agent.Config
	pair    cluster.Certificate // the agent's
	ca      *cluster.CA
	client  *http.Client
	super   *sql.DB // maintenance database
}

const secret = "a secret of the tests"

var shared struct {
	once  sync.Once
	stack *stack
}

// realStack gives all tests the same servers, with an agent in this process. It ends with the test binary.
func realStack(t testing.TB) *stack {
	t.Helper()
	shared.once.Do(func() {
		dir := check.Must(os.MkdirTemp("", "pgherd-agent-"))(t)
		s := newStack(t, clustertest.Postgres(t), dir)
		s.started(t, context.Background())
		s.startBouncer(t, context.Background())
		shared.stack = s
	})
	if shared.stack == nil {
		t.Fatal("the servers did not start; see the first test")
	}
	return shared.stack
}

// ownStack is a stack of the test's own, without an agent.
func ownStack(t testing.TB) *stack {
	t.Helper()
	return newStack(t, clustertest.New(t, nil), t.TempDir())
}

func newStack(t testing.TB, pg *cluster.Postgres, dir string) *stack {
	t.Helper()
	s := &stack{pg: pg}
	tools := check.Must(toolchain.Find())(t)
	s.ca = check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	agentPair := check.Must(s.ca.Issue("agent", "127.0.0.1"))(t)
	poolerPair := check.Must(s.ca.Issue("pooler", "localhost", "127.0.0.1"))(t)
	set := pooler.DefaultSettings()
	set.Dir, set.SocketDir = filepath.Join(dir, "pooler"), check.Must(cluster.SocketDir(filepath.Join(dir, "sock")))(t)
	set.ListenPort = check.Must(cluster.FreePort("127.0.0.1"))(t)
	set.TLSCertFile, set.TLSKeyFile = poolerPair.CertFile, poolerPair.KeyFile
	s.pair = agentPair
	s.config = agent.Config{
		Listen:          "127.0.0.1:" + strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t)),
		Certificate:     check.Must(certfile.Open("agent", agentPair.CertFile, agentPair.KeyFile))(t).Certificate,
		Secrets:         secrets,
		CredentialsFile: filepath.Join(dir, "credentials.json"),
		PostgresHost:    pg.Host(), PostgresPort: pg.Port(), Pooler: set,
		BackupDir: filepath.Join(dir, "backups"), PgDump: tools.PgDump, DataDir: dir, Version: "test",
		BackupPause: 100 * time.Millisecond,
		Versions:    versions.Policy{Development: true}, Languages: languages.Policy{Development: true},
	}
	s.prepare(t)
	s.super = check.Must(sql.Open("postgres", pg.URL(setup.MaintenanceDatabase)))(t)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots(t)}}}
	return s
}

// prepare runs agent init.
func (s *stack) prepare(t testing.TB) {
	t.Helper()
	check.Must(setup.Init(t.Context(), setup.Options{
		DSN: s.pg.URL("postgres"), CredentialsFile: s.config.CredentialsFile, Versions: s.config.Versions,
		Languages: s.config.Languages,
	}))(t)
}

func (s *stack) roots(t testing.TB) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(check.Must(os.ReadFile(s.ca.CertFile()))(t)) {
		t.Fatal("no certificate")
	}
	return pool
}

// run runs an agent in this process until ctx ends, and returns it with its log. Its error comes when it ends.
func (s *stack) run(t testing.TB, ctx context.Context) (*agent.Agent, *observer.ObservedLogs, <-chan error) {
	t.Helper()
	core, log := observer.New(zap.InfoLevel)
	a := check.Must(agent.New(s.config, agent.Deps{Log: zap.New(core)}))(t)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return a, log, ended
}

// started is run for an agent that must come to be in charge; this waits for that.
func (s *stack) started(t testing.TB, ctx context.Context) (*agent.Agent, *observer.ObservedLogs, <-chan error) {
	t.Helper()
	a, log, ended := s.run(t, ctx)
	select {
	case <-a.Started():
	case err := <-ended:
		t.Fatal("the agent ended: ", err)
	case <-time.After(check.Patience):
		t.Fatal("the agent is not in charge")
	}
	return a, log, ended
}

func (s *stack) startBouncer(t testing.TB, ctx context.Context) {
	t.Helper()
	s.bouncer = check.Must(cluster.RunPooler(ctx, cluster.PoolerOptions{
		Ini: pooler.ConfigFile(s.config.Pooler.Dir), Host: "127.0.0.1", Port: s.config.Pooler.ListenPort,
	}))(t)
}

func TestPgBouncerIsTheOneOfTheTools(t *testing.T) {
	check.NoError(t, cluster.CheckPooler(t.Context(), realStack(t).console(t)))
}

// console is PgBouncer's admin console.
func (s *stack) console(t testing.TB) *sql.DB {
	t.Helper()
	secrets := check.Must(setup.ReadCredentials(s.config.CredentialsFile))(t)
	return open(t, fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname=pgbouncer sslmode=disable",
		s.config.Pooler.SocketDir, s.config.Pooler.ListenPort, setup.PoolerAdmin, secrets.PoolerAdminPassword))
}

// pooled opens a pool of one connection through PgBouncer with TLS, as a customer does.
func (s *stack) pooled(t testing.TB, entry, login, password string) *sql.DB {
	t.Helper()
	return open(t, s.pooledURL(entry, login, password))
}

func (s *stack) pooledURL(entry, login, password string) string {
	u := url.URL{
		Scheme: "postgresql", User: url.UserPassword(login, password), Path: "/" + entry,
		Host:     "localhost:" + strconv.Itoa(s.config.Pooler.ListenPort),
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.ca.CertFile()}, "connect_timeout": {"10"}}.Encode(),
	}
	return u.String()
}

// direct opens a pool of one connection to PostgreSQL itself.
func (s *stack) direct(t testing.TB, database, login, password string) *sql.DB {
	t.Helper()
	return open(t, s.pg.URLFor(login, password, database))
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := check.Must(sql.Open("postgres", dsn))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// one runs a query for one text as the superuser in the maintenance database.
func (s *stack) one(t testing.TB, query string, args ...any) string {
	t.Helper()
	var text string
	check.NoError(t, s.super.QueryRowContext(t.Context(), query, args...).Scan(&text), query)
	return text
}

// works fails the test where a connection cannot run a query.
func works(t testing.TB, what string, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// refused fails the test where a statement succeeds.
func refused(t testing.TB, what string, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err == nil {
		t.Errorf("%s: %s succeeded", what, statement)
	}
}

func sqlState(err error) string {
	if p := pq.As(err); p != nil {
		return string(p.Code)
	}
	return ""
}

func freePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t))
}
