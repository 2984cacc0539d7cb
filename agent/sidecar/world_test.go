package sidecar_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestMain(m *testing.M) {
	sample.Tests(6)
	os.Exit(clustertest.Main(m))
}

const (
	agent    = "pgherd_agent"
	login    = "restore_22222222222242228222222222222222"
	password = "test-only"
	custom   = `shop "TO" $$ Ü;`
)

// customers are the roles of a database, by what the world's script calls them.
var customers = []string{"shop", "shop_rt", "shop_ro", "shop_gro", "shop_grw", "shop_c2", custom}

// world is a customer's database.
type world struct {
	clustertest.Database
	t testing.TB
}

var once sync.Once

// newWorld makes a database as the platform does.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{clustertest.NewDatabase(t), t}
	once.Do(func() { roles(t, w.Cluster.URL("postgres")) })
	w.furnish()
	return w
}

func (w *world) furnish() {
	w.t.Helper()
	clustertest.Exec(w.t, w.Cluster.URL("postgres"), `REVOKE ALL ON DATABASE `+w.Name+` FROM PUBLIC`,
		`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE `+w.Name+` TO shop WITH GRANT OPTION`)
	clustertest.Exec(w.t, w.URL, `ALTER SCHEMA public OWNER TO shop`, `GRANT USAGE ON SCHEMA public TO shop_gro, shop_grw`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT USAGE ON SCHEMAS TO shop_gro, shop_grw`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT SELECT ON TABLES TO shop_gro`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO shop_grw`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT SELECT ON SEQUENCES TO shop_gro`,
		`ALTER DEFAULT PRIVILEGES FOR ROLE shop GRANT USAGE, SELECT ON SEQUENCES TO shop_grw`)
}

// whole is a database with everything, loaded once, and the copy of it that its login has loaded. Tests work on copies of both.
type whole struct {
	source, copied string // databases
	text           string // the sidecar
	large          []backup.LargeObjects
}

var loaded struct {
	once sync.Once
	whole
}

func everything(t testing.TB) whole {
	t.Helper()
	loaded.once.Do(func() {
		w := newWorld(t)
		for _, script := range []string{"testdata/world.sql", "testdata/expressions.sql"} {
			w.load(string(check.Must(os.ReadFile(script))(t)))
		}
		c := w.copied()
		loaded.whole = whole{"everything", "everything_copied", w.sidecar(), w.largeObjects()}
		clustertest.Exec(t, w.Cluster.URL("postgres"), `CREATE DATABASE everything TEMPLATE `+w.Name,
			`CREATE DATABASE everything_copied TEMPLATE `+c.Name)
	})
	if loaded.source == "" {
		t.Fatal("the database with everything could not be made")
	}
	return loaded.whole
}

// like is a database like another one.
func like(t testing.TB, template string) *world {
	t.Helper()
	w := &world{clustertest.NewDatabase(t), t}
	clustertest.Exec(t, w.Cluster.URL("postgres"), `DROP DATABASE `+w.Name, `CREATE DATABASE `+w.Name+` TEMPLATE `+template,
		`ALTER DATABASE `+w.Name+` OWNER TO `+agent, `REVOKE ALL ON DATABASE `+w.Name+` FROM PUBLIC`)
	return w
}

// roles makes those of a customer and of a clone. The clone's have the names of the customer's, but for the beginning.
func roles(t testing.TB, super string) {
	t.Helper()
	clustertest.Exec(t, super,
		`CREATE ROLE pgherd_agent LOGIN CREATEDB CREATEROLE BYPASSRLS PASSWORD '`+password+`'`,
		`GRANT pg_signal_backend, pg_monitor, pg_read_all_data TO pgherd_agent`,
		`ALTER ROLE pgherd_agent SET search_path = pg_catalog, pg_temp`)
	for _, role := range slices.Backward(append([]string{login}, customers...)) { // the owner's is not the first that grants
		for _, name := range slices.Compact([]string{role, strings.Replace(role, "shop", "clone", 1)}) {
			clustertest.Exec(t, super, `SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit';
				CREATE ROLE `+pq.QuoteIdentifier(name)+` LOGIN PASSWORD '`+password+`'; RESET ROLE`)
		}
	}
	clustertest.Exec(t, super, `ALTER ROLE `+login+` BYPASSRLS`, `GRANT shop_grw TO shop_rt WITH INHERIT TRUE, SET FALSE`,
		`GRANT shop_gro TO shop_ro WITH INHERIT TRUE, SET FALSE`, `GRANT clone_grw TO clone_rt WITH INHERIT TRUE, SET FALSE`,
		`GRANT clone_gro TO clone_ro WITH INHERIT TRUE, SET FALSE`)
}

// load runs a script as the superuser, who becomes others by SET SESSION AUTHORIZATION.
func (w *world) load(script string) {
	w.t.Helper()
	w.psql(w.URL, script)
}

func (w *world) psql(url, script string) {
	w.t.Helper()
	tools := check.Must(toolchain.Find())(w.t)
	cmd := exec.Command(tools.Psql, "-X", "-q", "-o", os.DevNull, "-v", "ON_ERROR_STOP=1", "-v", "database="+w.Name, url)
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// dump runs pg_dump as the agent's backups do.
func (w *world) dump(args ...string) string {
	w.t.Helper()
	tools := check.Must(toolchain.Find())(w.t)
	var out, complaint bytes.Buffer
	cmd := exec.Command(tools.PgDump, append(args, "--no-subscriptions", "--no-tablespaces", "--encoding=UTF8", w.URL)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("pg_dump: %v\n%s", err, complaint.String())
	}
	return out.String()
}

func (w *world) sidecar() string { return w.dump("--schema-only") }

// portable is the text of a backup file.
func (w *world) portable() string {
	w.t.Helper()
	filter := dumpsql.Portable{
		Known: func(setting string) bool { return setting != "transaction_timeout" },
		Data:  func(int) {}, Table: func(string, []string) {}, Lines: func([]byte) {}, Sequence: func(dumpsql.Sequence) {},
		LargeObject: func(uint32) {}, Content: func([]byte) {},
	}
	var out bytes.Buffer
	check.NoError(w.t, filter.Copy(&out, strings.NewReader(w.dump("--no-owner", "--no-privileges"))))
	return out.String()
}

// copied is a copy of the world that its login has loaded.
func (w *world) copied() *world {
	w.t.Helper()
	c := &world{clustertest.NewDatabase(w.t), w.t}
	super := c.Cluster.URL("postgres")
	clustertest.Exec(w.t, super, `ALTER DATABASE `+c.Name+` OWNER TO `+agent, `REVOKE ALL ON DATABASE `+c.Name+` FROM PUBLIC`,
		`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE `+c.Name+` TO `+login)
	clustertest.Exec(w.t, c.URL, `ALTER SCHEMA public OWNER TO `+login)
	as := c.Cluster.URLFor(login, password, c.Name)
	c.psql(as, w.portable())
	clustertest.Exec(w.t, as, `ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC`) // in no dump of ours, but in an upload
	return c
}

// connect connects as the agent.
func (w *world) connect() *pgconn.PgConn {
	w.t.Helper()
	conn := check.Must(pgconn.Connect(context.Background(), w.Cluster.URLFor(agent, password, w.Name)))(w.t)
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// made applies a sidecar to the copy.
func (w *world) made(text string, r sidecar.Roles, large []backup.LargeObjects) (sidecar.Result, error) {
	c := sidecar.Copy{Database: w.Name, Login: login, Roles: r, LargeObjects: large}
	return c.Apply(w.t.Context(), w.connect(), strings.NewReader(text))
}

// same demands that a dump of the copy says what the sidecar says.
func (w *world) same(text string, r sidecar.Roles) {
	w.t.Helper()
	for _, d := range check.Must(r.Compare(strings.NewReader(text), strings.NewReader(w.sidecar())))(w.t) {
		w.t.Error(d)
	}
}

func (w *world) largeObjects() (list []backup.LargeObjects) {
	w.t.Helper()
	db := check.Must(sql.Open("postgres", w.URL))(w.t) // closed at once: the database becomes a template
	defer db.Close()
	rows := check.Must(db.Query(`SELECT o.oid, lomowner::regrole::text, a.grantor::regrole::text,
			CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(coalesce(a.grantee, lomowner)) END,
			coalesce(array_agg(privilege_type) FILTER (WHERE privilege_type <> ''), '{}'),
			coalesce(array_agg(privilege_type) FILTER (WHERE is_grantable), '{}'), lomacl IS NULL
		FROM pg_largeobject_metadata o LEFT JOIN LATERAL aclexplode(lomacl) a ON true GROUP BY 1, 2, 3, 4, 7 ORDER BY 1`))(w.t)
	defer rows.Close()
	for rows.Next() {
		var o backup.LargeObjects
		var g backup.Grant
		var grantor sql.NullString
		var plain bool
		check.NoError(w.t, rows.Scan(&o.First, &o.Owner, &grantor, &g.Grantee, pq.Array(&g.Privileges), pq.Array(&g.WithOption),
			&plain))
		o.Owner, g.Grantor = unquoted(o.Owner), unquoted(grantor.String)
		if o.Last = o.First; len(list) == 0 || list[len(list)-1].First != o.First {
			list = append(list, o)
		}
		if last := &list[len(list)-1]; !plain {
			last.Grants = append(last.Grants, g)
		}
	}
	check.NoError(w.t, rows.Err())
	return list
}

func unquoted(name string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(name, `"`), `"`), `""`, `"`)
}

// access lists owner and privileges of everything in a database, and the roles of policies.
func (w *world) access() string {
	w.t.Helper()
	query := string(check.Must(os.ReadFile("testdata/access.sql"))(w.t))
	rows := check.Must(w.Open(w.t).Query(query))(w.t)
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var line string
		check.NoError(w.t, rows.Scan(&line))
		b.WriteString(line + "\n")
	}
	check.NoError(w.t, rows.Err())
	return b.String()
}
