package pooler

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// stack is a real PostgreSQL and a real PgBouncer with two databases, shop and blog, each with a login of its own name
// (password "<name>-pw") and without a limit, shop with shop_rt (limit 2) as well.
type stack struct {
	dir      string
	settings Settings
	pooler   *Pooler
	super    *sql.DB // the maintenance database as superuser
	bouncer  *cluster.Pooler
	caFile   string
	owner    *Owner
}

var (
	oneStack  *stack
	startOnce sync.Once
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pgherd-pooler-")
	if err != nil {
		panic(err)
	}
	sample.Tests(6)
	stackDir = dir
	code := clustertest.Main(m)
	if oneStack != nil {
		oneStack.stop()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var stackDir string

// realStack gives every test the same servers, with the state of defaultState and open gates.
func realStack(t testing.TB) *stack {
	t.Helper()
	startOnce.Do(func() { oneStack = startStack(t) })
	if oneStack == nil {
		t.Fatal("the servers did not start; see the first test")
	}
	check.NoError(t, oneStack.reset(t.Context()))
	return oneStack
}

func (s *stack) defaultState() State {
	return State{Settings: s.settings, Entries: []Entry{
		{Database: "shop", ConnectionCap: 8, Logins: []Login{{"shop", 0}, {"shop_rt", 2}}},
		{Database: "blog", ConnectionCap: 8, Logins: []Login{{"blog", 0}}},
	}}
}

func (s *stack) reset(ctx context.Context) error {
	_, err := s.super.ExecContext(ctx, `TRUNCATE pooler.gate;
		INSERT INTO pooler.gate VALUES ('shop', 'shop', true), ('shop_rt', 'shop', true), ('blog', 'blog', true)`)
	return errors.Join(err, s.pooler.Apply(ctx, s.defaultState()), s.pooler.Evict(ctx, OfDatabase("shop")),
		s.pooler.Evict(ctx, OfDatabase("blog")))
}

func startStack(t testing.TB) *stack {
	t.Helper()
	s, pg := &stack{dir: stackDir}, clustertest.Postgres(t)
	s.configure(t, pg)
	s.fillPostgres(t, pg)
	s.startBouncer(t)
	return s
}

func (s *stack) configure(t testing.TB, pg *cluster.Postgres) {
	t.Helper()
	ca := check.Must(cluster.OpenCA(filepath.Join(s.dir, "ca")))(t)
	certificate := check.Must(ca.Issue("pooler", "localhost", "127.0.0.1", "::1"))(t)
	sockets := check.Must(cluster.SocketDir(filepath.Join(s.dir, "socket")))(t)
	set := DefaultSettings()
	set.Dir, set.SocketDir, s.caFile = filepath.Join(s.dir, "files"), sockets, ca.CertFile()
	set.TLSCertFile, set.TLSKeyFile = certificate.CertFile, certificate.KeyFile
	set.AuthPassword, set.AdminPassword = `auth "pw`, `admin "pw`
	set.LogFile = filepath.Join(sockets, "pgbouncer.log")
	set.ListenPort, set.ServerHost, set.ServerPort = check.Must(cluster.FreePort("127.0.0.1"))(t), pg.Host(), pg.Port()
	set.ListenAddresses = []string{"127.0.0.1", "::1"}
	uid, gid, switched, err := cluster.ChildUser()
	check.NoError(t, err)
	if switched {
		s.owner = &Owner{UID: uid, GID: gid}
	}
	s.settings, s.pooler = set, New(set, s.owner)
}

func (s *stack) fillPostgres(t testing.TB, pg *cluster.Postgres) {
	t.Helper()
	clustertest.Exec(t, pg.URL("postgres"), "CREATE ROLE pgherd_agent LOGIN", "CREATE DATABASE pgherd", "CREATE DATABASE shop",
		"CREATE DATABASE blog", "CREATE ROLE shop LOGIN PASSWORD 'shop-pw'", "CREATE ROLE shop_rt LOGIN PASSWORD 'shop_rt-pw'",
		"CREATE ROLE blog LOGIN PASSWORD 'blog-pw'")
	// The schema may be made again.
	clustertest.Exec(t, pg.URL("pgherd"), SchemaSQL, SchemaSQL,
		"ALTER ROLE pgherd_pooler PASSWORD "+pq.QuoteLiteral(s.settings.AuthPassword))
	s.super = check.Must(sql.Open("postgres", pg.URL("pgherd")))(t)
}

// strictMemory has the C library give each larger piece of memory back at once, so that PgBouncer ends when it uses one that it
// has freed; otherwise it does so once in thousands of times.
var strictMemory = []string{"MALLOC_MMAP_THRESHOLD_=4096", "MALLOC_TRIM_THRESHOLD_=0", "MALLOC_TOP_PAD_=0"}

func (s *stack) startBouncer(t testing.TB) {
	t.Helper()
	check.NoError(t, s.pooler.Write(s.defaultState()))
	s.bouncer = check.Must(cluster.RunPooler(context.Background(), cluster.PoolerOptions{
		Ini: ConfigFile(s.settings.Dir), Host: "127.0.0.1", Port: s.settings.ListenPort, Env: strictMemory,
	}))(t)
	// Its TCP port takes connections a moment before its socket is there.
	check.Eventually(t, "PgBouncer does not answer", func() bool { return s.pooler.Ping(context.Background()) == nil })
}

func (s *stack) stop() {
	if s.bouncer != nil {
		_ = s.bouncer.Kill()
	}
	if s.super != nil {
		_ = s.super.Close()
	}
}

// client is a customer's connection over TCP; extra holds more settings of the connection string.
func (s *stack) client(entry, login, extra string) *sql.DB {
	parts := []string{"host=127.0.0.1", "port=" + strconv.Itoa(s.settings.ListenPort), "dbname=" + entry, "user=" + login,
		"password=" + login + "-pw", "sslmode=verify-full", "sslrootcert=" + s.caFile, "connect_timeout=20", extra}
	db, err := sql.Open("postgres", strings.Join(parts, " "))
	if err != nil {
		panic(err)
	}
	return db
}

// enter logs in and runs a query, once.
func (s *stack) enter(t testing.TB, entry, login, extra string) error {
	t.Helper()
	db := s.client(entry, login, extra)
	defer db.Close()
	var got string
	err := db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&got)
	if want := strings.TrimSuffix(entry, TransactionSuffix); err == nil && got != want {
		t.Errorf("entry %s leads to database %s", entry, got)
	}
	return err
}
