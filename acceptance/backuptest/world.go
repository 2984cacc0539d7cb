package backuptest

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Main runs the tests of a package: of a sample, one in twenty and those that always names. It returns the exit status.
func Main(m *testing.M, always ...string) int {
	sample.Tests(20, always...)
	return clustertest.Main(m)
}

const (
	DatabaseID  id.DatabaseID  = "11111111-1111-4111-8111-111111111111"
	OperationID id.OperationID = "22222222-2222-4222-8222-222222222222"
	Filename    core.Filename  = "20260301_120000.sql.gz"
	Password                   = "test-only"
)

// World is a customer's database and an agent that backs it up.
type World struct {
	clustertest.Database
	T     *testing.T
	Root  string
	Files *store.Store
	Agent *Agent
}

// New returns the world of a database of the cluster of the test binary.
func New(t *testing.T) *World {
	t.Helper()
	db := clustertest.NewDatabase(t)
	once.Do(func() { roles(t, db.Cluster.URL("postgres")) })
	return worldOf(t, db)
}

// NewOwn is a world with a cluster of its own, which the test may crash.
func NewOwn(t *testing.T) *World {
	t.Helper()
	return NewWith(t, nil)
}

// NewWith is NewOwn with settings of the cluster's.
func NewWith(t *testing.T, settings map[string]string) *World {
	t.Helper()
	pg := clustertest.New(t, settings)
	roles(t, pg.URL("postgres"))
	clustertest.Exec(t, pg.URL("postgres"), `CREATE DATABASE own TEMPLATE template0`)
	return worldOf(t, clustertest.Database{Name: "own", URL: pg.URL("own"), Cluster: pg})
}

func worldOf(t *testing.T, db clustertest.Database) *World {
	t.Helper()
	super := db.Cluster.URL("postgres")
	clustertest.Exec(t, db.URL, `ALTER SCHEMA public OWNER TO shop`)
	clustertest.Exec(t, super, `REVOKE ALL ON DATABASE `+db.Name+` FROM PUBLIC`,
		`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE `+db.Name+` TO shop WITH GRANT OPTION`,
		`ALTER DATABASE `+db.Name+` SET statement_timeout = '1ms'`, // must not reach the agent
		`ALTER ROLE shop IN DATABASE `+db.Name+` SET work_mem = '8MB'`)
	db.URL += patient
	w := &World{Database: db, T: t, Root: t.TempDir()}
	w.Files = w.Store(store.Options{Reserve: 1})
	w.Agent = w.NewAgent(w.Config())
	return w
}

// NewAgent is an agent that has just started.
func (w *World) NewAgent(config Config) *Agent {
	w.T.Helper()
	agent := NewAgent(config, w.Files)
	w.T.Cleanup(func() { _ = agent.Room.Close() })
	return agent
}

// Store opens the store as an agent does that has just started.
func (w *World) Store(o store.Options) *store.Store {
	w.T.Helper()
	if o.Key == nil {
		o.Key = OneKey
	}
	files := store.New(w.Root, o)
	check.NoError(w.T, files.Sweep())
	return files
}

// OneKey is the key of every database.
func OneKey(context.Context, id.DatabaseID) ([]byte, error) {
	return bytes.Repeat([]byte("k"), core.KeyBytes), nil
}

var once sync.Once

func roles(t *testing.T, super string) {
	t.Helper()
	clustertest.Exec(t, super,
		`CREATE ROLE pgherd_agent LOGIN CREATEDB CREATEROLE BYPASSRLS PASSWORD '`+Password+`'`,
		`GRANT pg_signal_backend, pg_monitor TO pgherd_agent`,
		`GRANT pg_read_all_data, pg_use_reserved_connections TO pgherd_agent WITH ADMIN OPTION`,
		`ALTER ROLE pgherd_agent SET createrole_self_grant = 'set, inherit'`,
		`ALTER ROLE pgherd_agent SET restrict_nonsystem_relation_kind = 'view, foreign-table'`,
		`GRANT SET ON PARAMETER temp_file_limit, pg_stat_statements.track TO pgherd_agent`,
		`GRANT CONNECT ON DATABASE postgres TO pgherd_agent`, `CREATE SCHEMA ledger AUTHORIZATION pgherd_agent`,
		`SET ROLE pgherd_agent;`+LedgerTables(t),
		`SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit';
		CREATE ROLE shop LOGIN PASSWORD '`+Password+`'; CREATE ROLE "shop reader"; GRANT "shop reader" TO shop`)
}

// LedgerTables makes the tables of the ledger.
func LedgerTables(t testing.TB) string {
	t.Helper()
	ledger := check.Must(os.ReadFile(filepath.Join("..", "setup", "ledger.sql")))(t)
	return string(ledger)
}

// Config is that of an agent of the world.
func (w *World) Config() Config { return At(w.Cluster.Host(), w.Cluster.Port()) }

// At is the configuration for a cluster.
func At(host string, port int) Config {
	tools, err := toolchain.Find()
	if err != nil {
		panic(err)
	}
	return Config{
		Server: sessions.Server{Host: host, Port: port, User: "pgherd_agent", Password: Password, Maintenance: "postgres"},
		Tool:   pgdump.Tool{Path: tools.PgDump},
	}
}

// Request is that of a backup of the database, with verification.
func (w *World) Request() backup.Request {
	return backup.Request{
		OperationID: OperationID, DatabaseID: DatabaseID, Database: w.Name, Filename: Filename, Verify: true,
		Owner: "shop", Logins: []string{"shop", "shop reader"},
	}
}

// patient is the part of a connection string that lifts the database's own timeout. A SET would have to be quicker than that.
const patient = "&options=-cstatement_timeout%3D0"

// Patient is a login's connection to the database without the database's own timeout.
func (w *World) Patient(login string) string {
	return w.Cluster.URLFor(login, Password, w.Name) + patient
}

// Load runs a script as the customer, and lets the agent in, as the platform does with every database that it makes.
func (w *World) Load(sql string) {
	w.T.Helper()
	w.PSQL(w.Patient("shop"), sql)
	clustertest.Exec(w.T, w.Cluster.URL("postgres"), `GRANT CONNECT ON DATABASE `+w.Name+` TO pgherd_agent`)
}

// Trap makes a function that does something in the copies of verifications only.
func Trap(body string) string {
	return `CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		IF current_database() LIKE 'verify%' THEN ` + body + ` END IF; RETURN true; END $$;`
}

// LoadRich makes something of every kind.
func (w *World) LoadRich() {
	w.T.Helper()
	sql := check.Must(os.ReadFile("testdata/rich.sql"))(w.T)
	w.Load(string(sql))
}

// PSQL runs a script with PostgreSQL's own client.
func (w *World) PSQL(url, script string) {
	w.T.Helper()
	tools := check.Must(toolchain.Find())(w.T)
	cmd := exec.Command(tools.Psql, "-X", "-q", "-o", os.DevNull, "-v", "ON_ERROR_STOP=1", url)
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.T.Fatalf("psql: %v\n%s", err, out)
	}
}

// WaitingRun begins a backup, and returns when it waits for a lock. What it tells is how the backup ends.
func (w *World) WaitingRun() <-chan error {
	w.T.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Run(context.Background(), w.Request(), Unseen)
		ended <- err
	}()
	admin := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.T)
	for waiting := 0; waiting == 0; time.Sleep(10 * time.Millisecond) {
		if err := admin.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`,
			"pgherd-backup-"+string(OperationID)).Scan(&waiting); err != nil {
			w.T.Fatal(err)
		}
	}
	return ended
}

// Unseen is progress that nobody looks at.
func Unseen(string, int, command.Bytes) {}

// Run makes the backup and checks that progress is real: it never falls and stays within the whole.
func (w *World) Run(agent *Agent, req backup.Request) (backup.Result, error) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	last := 0
	return agent.Run(ctx, req, func(stage string, percent int, bytes command.Bytes) {
		if percent < last || percent > 100 {
			w.T.Errorf("progress went from %d to %d while %s", last, percent, stage)
		}
		if bytes.Done < 0 || bytes.Done > bytes.Total {
			w.T.Errorf("%d of %d bytes while %s", bytes.Done, bytes.Total, stage)
		}
		last = percent
	})
}

// Text is the stored file's text.
func (w *World) Text() string {
	w.T.Helper()
	file, _, err := w.Files.Open(w.T.Context(), DatabaseID, Filename)
	if err != nil {
		w.T.Fatal(err)
	}
	defer file.Close()
	return Unpacked(w.T, check.Must(io.ReadAll(file))(w.T))
}

// Unpacked is the text of what is stored.
func Unpacked(t testing.TB, packed []byte) string {
	t.Helper()
	zip := check.Must(gzip.NewReader(bytes.NewReader(packed)))(t)
	return string(check.Must(io.ReadAll(zip))(t))
}

// Replace puts another text in the place of the stored file, with a manifest that names it.
func (w *World) Replace(change func(text string) string) {
	w.T.Helper()
	w.Rewrite(func(_ *core.Manifest, data, _ []byte) (newData, _ []byte) {
		return Packed(change(Unpacked(w.T, data))), nil
	})
}

// Rewrite puts another set in the place of the stored one.
func (w *World) Rewrite(change Change) {
	w.T.Helper()
	Rewrite(w.T, w.Files, DatabaseID, Filename, change)
}

// Change changes a set. What it returns of data and sidecar is new, nil: as it was. The manifest names it.
type Change func(m *core.Manifest, data, sidecar []byte) (newData, newSidecar []byte)

// Rewrite puts another set in the place of a stored one.
func Rewrite(t testing.TB, files *store.Store, of id.DatabaseID, name core.Filename, change Change) {
	t.Helper()
	ctx := t.Context()
	m := check.Must(files.Manifest(ctx, of, name))(t).Manifest
	file, _, err := files.Open(ctx, of, name)
	check.NoError(t, err)
	data := check.Must(io.ReadAll(file))(t)
	schema := check.Must(io.ReadAll(check.Must(files.OpenSidecar(ctx, of, name))(t)))(t)
	newData, newSchema := change(&m, data, schema)
	check.NoError(t, files.Delete(ctx, of, name))
	draft := check.Must(files.Begin(ctx, of, name))(t)
	m.File = write(t, check.Must(draft.Data())(t), either(newData, data))
	m.Sidecar = write(t, check.Must(draft.Sidecar())(t), either(newSchema, schema))
	check.Must(draft.Prepare(m))(t)
	check.NoError(t, draft.Commit(ctx, func(string) {}))
	check.NoError(t, draft.End(ctx))
}

func either(a, b []byte) []byte {
	if a != nil {
		return a
	}
	return b
}

func write(t testing.TB, file *store.File, text []byte) core.FileDigest {
	t.Helper()
	check.Must(file.Write(text))(t)
	return check.Must(file.Finish())(t)
}

// Packed is a text as it is stored and uploaded.
func Packed(text string) []byte {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, text) // a buffer takes everything
	_ = zip.Close()
	return packed.Bytes()
}

// Path is that of the one blob of the backup with an ending; empty where there is none.
func (w *World) Path(ending string) string {
	w.T.Helper()
	paths := check.Must(filepath.Glob(filepath.Join(w.Root, string(DatabaseID), Filename.Stem()+"*"+ending)))(w.T)
	if len(paths) > 1 {
		w.T.Fatalf("%d blobs end with %s", len(paths), ending)
	}
	return strings.Join(paths, "")
}

// Backup makes a backup that must succeed.
func (w *World) Backup(req backup.Request) backup.Result {
	w.T.Helper()
	return check.Must(w.Run(w.Agent, req))(w.T)
}

// LeavesNothing fails where something is left over.
func (w *World) LeavesNothing() {
	w.T.Helper()
	if left := w.Leftovers(); left != "" {
		w.T.Errorf("left: %s", left)
	}
}

// Leftovers are databases, roles, rows of copies and sessions that a backup must not leave behind. The server notices a little
// later that a session's client has gone.
func (w *World) Leftovers() (left string) {
	w.T.Helper()
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.T)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, sessions := w.count(db)
		if sessions == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

func (w *World) count(db *sql.DB) (left string, ofSessions int) {
	w.T.Helper()
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
			w.T.Fatal(err)
		}
	}
	if databases+roles+rows+sessions == 0 {
		return "", 0
	}
	return fmt.Sprintf("%d databases, %d roles, %d rows of copies, %d sessions", databases, roles, rows, sessions), sessions
}
