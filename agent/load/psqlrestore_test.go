package load_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/search"
	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// mode is a way to call pg_dump.
type mode struct {
	options []string
	before  []string // of a dump that must have been restored first
	// portable: the dump is one of a backup, which psql can read whatever routines are called. It cannot read one that is called
	// "begin" as pg_dump writes that.
	portable bool
}

// modes are those of one database as text: what --create adds, such as \connect, our reader refuses.
var modes = []mode{
	{options: []string{"--no-owner", "--no-privileges"}, portable: true},
	{options: nil},
	{options: []string{"--inserts"}},
	{options: []string{"--column-inserts", "--on-conflict-do-nothing"}},
	{options: []string{"--rows-per-insert=3"}},
	{options: []string{"--schema-only"}},
	{options: []string{"--data-only"}, before: []string{"--section=pre-data"}},
	{options: []string{"--data-only", "--disable-triggers", "--superuser=postgres"}, before: []string{"--schema-only"}},
	{options: []string{"--clean", "--if-exists"}, before: []string{"--schema-only"}},
	{options: []string{"--no-owner", "--no-comments"}},
	{options: []string{"--quote-all-identifiers"}},
	{options: []string{"--disable-dollar-quoting"}},
	{options: []string{"--use-set-session-authorization"}},
	{options: []string{"--section=pre-data", "--section=data"}},
	{options: []string{"--section=post-data"}, before: []string{"--section=pre-data", "--section=data"}},
	{options: []string{"--load-via-partition-root", "--no-large-objects", "--no-privileges"}},
	{options: []string{"--encoding=SQL_ASCII", "--enable-row-security", "--no-publications", "--no-toast-compression",
		"--no-table-access-method", "--no-unlogged-table-data", "--extra-float-digits=0"}},
	{options: []string{"--inserts", "--quote-all-identifiers", "--disable-dollar-quoting"}},
	{options: []string{"--section=data"}, before: []string{"--section=pre-data"}},
	{options: []string{"--clean"}, before: []string{}},
}

// What psql restores of a dump, our reader restores, and the same. The corpus has a database for each mode;
// TestSearchRestoredAsByPsql looks beyond it.
func FuzzRestoredAsByPsql(f *testing.F) { f.Fuzz(restoredAsByPsql) }

func TestSearchRestoredAsByPsql(t *testing.T) {
	met := map[byte]bool{}
	search.Beyond(t, func(t *testing.T, input []byte) {
		met[input[0]%byte(len(modes))] = true
		restoredAsByPsql(t, input)
	})
	t.Logf("ways to call pg_dump: %d, of %d", len(met), len(modes))
}

// restoredAsByPsql compares what becomes of a dump of the database that the input stands for.
func restoredAsByPsql(t *testing.T, input []byte) {
	w := differential{T: t, tools: check.Must(toolchain.Find())(t)}
	tape := &tape{rest: input}
	m := modes[tape.upTo(len(modes))]
	source := w.database()
	w.make(source, customerOf(tape, m.portable))
	text := w.dump(source, m)
	splitAlike(t, text, func(sql string) bool { return strings.HasPrefix(sql, "COPY ") })
	byPsql, byReader := w.database(), w.database()
	if m.before != nil {
		before := w.dump(source, mode{options: m.before})
		for _, db := range []clustertest.Database{byPsql, byReader} {
			if complaint := w.psql(db, before); complaint != "" {
				t.Fatal(complaint)
			}
		}
	}
	end := w.psql(byPsql, text)
	if diff := cmp.Diff(end, w.read(byReader, text)); diff != "" {
		t.Errorf("%v: psql (-) and the reader (+) end with\n%s", m.options, diff)
	} else if end != "" { // some of what pg_dump writes, it cannot restore
		t.Logf("%v: both end with %s", m.options, end)
	}
	if diff := cmp.Diff(w.dump(byPsql, mode{}), w.dump(byReader, mode{})); diff != "" {
		t.Errorf("%v: psql (-) and the reader (+) have restored\n%s", m.options, diff)
	}
	if !m.portable {
		return
	}
	asDumped := w.database()
	if end := w.read(asDumped, w.dump(source, mode{options: m.options})); end != "" {
		t.Fatal(end)
	}
	if diff := cmp.Diff(w.dump(asDumped, m), w.dump(byReader, m)); diff != "" {
		t.Errorf("of a dump (-) and of one made portable (+), the reader has restored\n%s", diff)
	}
}

// differential restores in two ways.
type differential struct {
	*testing.T
	tools toolchain.Tools
}

var otherOwner sync.Once

func (w differential) database() clustertest.Database {
	db := clustertest.NewDatabase(w)
	otherOwner.Do(func() {
		clustertest.Exec(w, db.URL, `CREATE ROLE "other; -- owner"`)
	})
	clustertest.Exec(w, db.URL, `GRANT CREATE ON DATABASE `+db.Name+` TO "other; -- owner"`)
	return db
}

// make runs the statements of a customer. All must be right.
func (w differential) make(db clustertest.Database, statements []string) {
	conn := check.Must(pgconn.Connect(w.Context(), db.URL))(w.T)
	defer conn.Close(w.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(w.Context(), statement).ReadAll(); err != nil {
			w.Fatalf("%v, in %s", err, statement)
		}
	}
}

// restrict matches what pg_dump writes, and no line of a text: those have shorter keys.
var restrict = regexp.MustCompile(`(?m)^\\(un)?restrict [0-9A-Za-z]{63}$`)

// dump is what pg_dump writes of a database, with a key that is always the same.
func (w differential) dump(db clustertest.Database, m mode) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), w.tools.PgDump, append(m.options, db.URL)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "PGCLIENTENCODING=UTF8"}
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		w.Fatalf("pg_dump %v: %s", m.options, exit.Stderr)
	}
	check.NoError(w.T, err)
	text := restrict.ReplaceAllString(string(out), `\${1}restrict Key`)
	if !m.portable {
		return text
	}
	var portable bytes.Buffer
	p := dumpsql.Portable{
		Known: func(name string) bool { return w.settings(db)[name] }, Data: func(int) {}, Table: func(string, []string) {},
		Lines: func([]byte) {}, Sequence: func(dumpsql.Sequence) {}, LargeObject: func(uint32) {}, Content: func([]byte) {},
	}
	check.NoError(w.T, p.Copy(&portable, strings.NewReader(text)))
	return portable.String()
}

var settingsOfServer map[string]bool

func (w differential) settings(db clustertest.Database) map[string]bool {
	if settingsOfServer == nil {
		settingsOfServer = check.Must(content.KnownSettings(w.Context(), db.Open(w)))(w.T)
	}
	return settingsOfServer
}

// A newer pg_dump sets what PostgreSQL 16 does not know. psql goes on after that, as after any error; the reader leaves it out.
const unknownSetting = "SET transaction_timeout = 0;\n"

var psqlError = regexp.MustCompile(`(?m)^.*ERROR:  ([0-9A-Z]{5})$`)

// psql restores a text up to the first error, of which it returns the SQLSTATE.
func (w differential) psql(db clustertest.Database, text string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), w.tools.Psql, "-X", "-q", "-o", os.DevNull, "-v", "ON_ERROR_STOP=1",
		"-v", "VERBOSITY=sqlstate", db.URL)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "PGCLIENTENCODING=UTF8"}
	cmd.Stdin = strings.NewReader(strings.Replace(text, unknownSetting, "\n", 1))
	out, err := cmd.CombinedOutput()
	if e := psqlError.FindSubmatch(out); e != nil {
		return string(e[1])
	}
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

// read is psql by our reader.
func (w differential) read(db clustertest.Database, text string) string {
	w.Helper()
	conn := check.Must(pgconn.Connect(w.Context(), db.URL))(w.T)
	defer conn.Close(w.Context())
	r := load.Restorer{Conn: conn, Settings: w.settings(db)}
	err := r.Run(w.Context(), dumpsql.NewReader(strings.NewReader(text), dumpsql.Limits{}))
	var failed *load.StatementError
	switch {
	case errors.As(err, &failed) && failed.SQLState != "":
		return failed.SQLState
	case err != nil:
		return err.Error()
	}
	return ""
}
