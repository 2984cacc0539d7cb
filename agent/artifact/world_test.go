package artifact_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/agent/uploads"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(runUntilCrash())
	}
	if err := sample.Tests(8, "TestKilledAtEveryPoint"); err != nil {
		panic(err)
	}
	os.Exit(clustertest.Main(m))
}

const (
	databaseID  id.DatabaseID   = "11111111-1111-4111-8111-111111111111"
	operationID id.OperationID  = "22222222-2222-4222-8222-222222222222"
	filename    backup.Filename = "20260301_120000.sql.gz"
	password                    = "test-only"
)

// world is a customer's database and an agent that backs it up.
type world struct {
	clustertest.Database
	t       *testing.T
	root    string
	files   *store.Store
	agent   *artifact.Backuper
	uploads *uploads.Uploads // of the agent that has started last
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := clustertest.NewDatabase(t)
	once.Do(func() { roles(t, db.Cluster.URL("postgres")) })
	return worldOf(t, db)
}

// newOwnWorld is a world with a cluster of its own, which the test may crash.
func newOwnWorld(t *testing.T) *world {
	t.Helper()
	pg := clustertest.New(t, nil)
	roles(t, pg.URL("postgres"))
	clustertest.Exec(t, pg.URL("postgres"), `CREATE DATABASE own TEMPLATE template0`)
	return worldOf(t, clustertest.Database{Name: "own", URL: pg.URL("own"), Cluster: pg})
}

func worldOf(t *testing.T, db clustertest.Database) *world {
	t.Helper()
	super := db.Cluster.URL("postgres")
	clustertest.Exec(t, db.URL, `ALTER SCHEMA public OWNER TO shop`)
	clustertest.Exec(t, super, `REVOKE ALL ON DATABASE `+db.Name+` FROM PUBLIC`,
		`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE `+db.Name+` TO shop WITH GRANT OPTION`,
		`ALTER DATABASE `+db.Name+` SET statement_timeout = '1ms'`, // must not reach the agent
		`ALTER ROLE shop IN DATABASE `+db.Name+` SET work_mem = '8MB'`)
	w := &world{Database: db, t: t, root: t.TempDir()}
	w.files = w.open(store.Options{Reserve: 1})
	w.agent = w.newAgent(w.config())
	return w
}

// newAgent is an agent that has just started.
func (w *world) newAgent(config artifact.Config) *artifact.Backuper {
	w.t.Helper()
	agent := artifact.New(config, w.files)
	if err := agent.ForgetReservations(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = agent.Close() })
	w.uploads = uploads.New(w.files, agent, zap.NewNop())
	return agent
}

func (w *world) open(o store.Options) *store.Store {
	w.t.Helper()
	files := store.New(w.root, o)
	if err := files.Sweep(); err != nil {
		w.t.Fatal(err)
	}
	return files
}

var once sync.Once

func roles(t *testing.T, super string) {
	t.Helper()
	clustertest.Exec(t, super,
		`CREATE ROLE pgherd_agent LOGIN CREATEDB CREATEROLE BYPASSRLS PASSWORD '`+password+`'`,
		`GRANT pg_signal_backend, pg_monitor TO pgherd_agent`,
		`GRANT pg_read_all_data, pg_use_reserved_connections TO pgherd_agent WITH ADMIN OPTION`,
		`ALTER ROLE pgherd_agent SET createrole_self_grant = 'set, inherit'`,
		`ALTER ROLE pgherd_agent SET restrict_nonsystem_relation_kind = 'view, foreign-table'`,
		`GRANT SET ON PARAMETER temp_file_limit TO pgherd_agent`,
		`GRANT CONNECT ON DATABASE postgres TO pgherd_agent`, `CREATE SCHEMA ledger AUTHORIZATION pgherd_agent`,
		`SET ROLE pgherd_agent;`+ledgerTables(t),
		`SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit';
		CREATE ROLE shop LOGIN PASSWORD '`+password+`'; CREATE ROLE "shop reader"; GRANT "shop reader" TO shop`)
}

// ledgerTables makes the tables of the ledger.
func ledgerTables(t testing.TB) string {
	t.Helper()
	ledger, err := os.ReadFile("../setup/ledger.sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(ledger)
}

func (w *world) config() artifact.Config {
	tools, err := toolchain.Find()
	if err != nil {
		w.t.Fatal(err)
	}
	return artifact.Config{
		Host: w.Cluster.Host(), Port: w.Cluster.Port(), User: "pgherd_agent", Password: password, Maintenance: "postgres",
		PgDump: tools.PgDump,
	}
}

func (w *world) request() artifact.Request {
	return artifact.Request{
		OperationID: operationID, DatabaseID: databaseID, Database: w.Name, Filename: filename, Verify: true,
		Owner: "shop", Logins: []string{"shop", "shop reader"},
	}
}

// patient is a login's connection to the database without the database's own timeout. A SET would have to be quicker than that.
func (w *world) patient(login string) string {
	return w.Cluster.URLFor(login, password, w.Name) + "&options=-cstatement_timeout%3D0"
}

// load runs a script as the customer, and lets the agent in, as the platform does with every database that it makes.
func (w *world) load(sql string) {
	w.t.Helper()
	w.psql(w.patient("shop"), sql)
	clustertest.Exec(w.t, w.Cluster.URL("postgres"), `GRANT CONNECT ON DATABASE `+w.Name+` TO pgherd_agent`)
}

// trap makes a function that does something in the copies of verifications only.
func trap(body string) string {
	return `CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() LIKE 'verify%' THEN ` + body + ` END IF; RETURN true; END $$;`
}

func (w *world) loadRich() {
	w.t.Helper()
	sql, err := os.ReadFile("testdata/rich.sql")
	if err != nil {
		w.t.Fatal(err)
	}
	w.load(string(sql))
}

// psql runs a script with PostgreSQL's own client.
func (w *world) psql(url, script string) {
	w.t.Helper()
	tools, err := toolchain.Find()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(tools.Psql, "-X", "-q", "-o", os.DevNull, "-v", "ON_ERROR_STOP=1", url)
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// waitingRun begins a backup, and returns when it waits for a lock. What it tells is how the backup ends.
func (w *world) waitingRun() <-chan error {
	w.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.Run(context.Background(), w.request(), unseen)
		ended <- err
	}()
	admin := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.t)
	for waiting := 0; waiting == 0; time.Sleep(10 * time.Millisecond) {
		if err := admin.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`,
			"pgherd-backup-"+string(operationID)).Scan(&waiting); err != nil {
			w.t.Fatal(err)
		}
	}
	return ended
}

// unseen is progress that nobody looks at.
func unseen(string, int, command.Bytes) {}

// run makes the backup and checks that progress is real: it never falls and stays within the whole.
func (w *world) run(agent *artifact.Backuper, req artifact.Request) (artifact.Result, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	last := 0
	return agent.Run(ctx, req, func(stage string, percent int, bytes command.Bytes) {
		if percent < last || percent > 100 {
			w.t.Errorf("progress went from %d to %d while %s", last, percent, stage)
		}
		if bytes.Done < 0 || bytes.Done > bytes.Total {
			w.t.Errorf("%d of %d bytes while %s", bytes.Done, bytes.Total, stage)
		}
		last = percent
	})
}

// text is the stored file's text.
func (w *world) text() string {
	w.t.Helper()
	file, _, err := w.files.Open(databaseID, filename)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.unzipped(file)
}

// unzipped is the text of a file, which it closes.
func (w *world) unzipped(file io.ReadCloser) string {
	w.t.Helper()
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// replace puts another text in the place of the stored file, with a manifest that names it.
func (w *world) replace(change func(text string) string) {
	w.t.Helper()
	m, err := w.files.Manifest(databaseID, filename)
	if err != nil {
		w.t.Fatal(err)
	}
	changed := change(w.text())
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := io.WriteString(zip, changed); err != nil {
		w.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		w.t.Fatal(err)
	}
	file, err := w.files.Create(databaseID, filename)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := file.Write(zipped.Bytes()); err != nil {
		w.t.Fatal(err)
	}
	if m.File, err = file.Finish(); err != nil {
		w.t.Fatal(err)
	}
	schema, err := os.ReadFile(w.path(".schema.sql.gz"))
	if err != nil {
		w.t.Fatal(err)
	}
	side, err := w.files.CreateSidecar(databaseID, filename)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := side.Write(schema); err != nil {
		w.t.Fatal(err)
	}
	if m.Sidecar, err = side.Finish(); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.files.Prepare(m.Manifest); err != nil {
		w.t.Fatal(err)
	}
	if err := w.files.Commit(databaseID, filename, func(string) {}); err != nil {
		w.t.Fatal(err)
	}
}

// leftovers are databases, roles, rows of copies and sessions that a backup must not leave behind. The server notices a little
// later that a session's client has gone.
func (w *world) leftovers() (left string) {
	w.t.Helper()
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.t)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, sessions := w.count(db)
		if sessions == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

func (w *world) count(db *sql.DB) (left string, ofSessions int) {
	w.t.Helper()
	var databases, roles, rows, sessions int
	for _, c := range []struct { // the sessions first: they remove the others
		query string
		n     *int
	}{
		{`SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgherd-backup-%'`, &sessions},
		{`SELECT count(*) FROM pg_database WHERE datname ~ '^(verify|qualify)_'`, &databases},
		{`SELECT count(*) FROM pg_roles WHERE rolname ~ '^(verify|qualify|dump)_'`, &roles},
		{`SELECT count(*) FROM ledger.copy`, &rows},
	} {
		if err := db.QueryRow(c.query).Scan(c.n); err != nil {
			w.t.Fatal(err)
		}
	}
	if databases+roles+rows+sessions == 0 {
		return "", 0
	}
	return fmt.Sprintf("%d databases, %d roles, %d rows of copies, %d sessions", databases, roles, rows, sessions), sessions
}
