package agent_test

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
)

// others are databases that are left out where one is had back. Some of their files are large, most are not, and many are not
// there at all.
type others struct{ *archived }

// in runs statements in one of them, each by itself.
func (x others) in(t *testing.T, database string, statements ...string) {
	t.Helper()
	db := agenttest.Open(t, x.PG.URL(database))
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, ": ", err)
		}
	}
	check.NoError(t, db.Close()) // a database in use is no template
}

func (x others) server(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := x.Super.Exec(s); err != nil {
			t.Fatal(s, ": ", err)
		}
	}
}

// ofAllKinds makes tables of several sizes with an index of each kind.
const ofAllKinds = `
	CREATE TABLE small (id serial PRIMARY KEY, text text, list int[], place point);
	CREATE TABLE large (id serial PRIMARY KEY, text text, list int[], place point);
	CREATE UNLOGGED TABLE unlogged AS SELECT 1 AS id;
	CREATE INDEX ON small USING hash (text); CREATE INDEX ON small USING gin (list); CREATE INDEX ON small USING gist (place);
	CREATE INDEX ON small USING spgist (place); CREATE INDEX ON small USING brin (id);
	CREATE INDEX ON large USING hash (text); CREATE INDEX ON large USING gin (list); CREATE INDEX ON large USING gist (place);
	CREATE INDEX ON large USING spgist (place); CREATE INDEX ON large USING brin (id);
	INSERT INTO small (text, list, place) SELECT md5(n::text), ARRAY[n], point(n, n) FROM generate_series(1, 50) n;
	INSERT INTO large (text, list, place) SELECT md5(n::text), ARRAY[n], point(n, n) FROM generate_series(1, 20000) n`

// changes are what is done to them, once with and once without whole pages in WAL.
var changes = []string{
	"VACUUM", "UPDATE small SET text = text || 'x'", "UPDATE large SET place = point(id, 0) WHERE id % 3 = 0",
	"DELETE FROM large WHERE id % 7 = 0", "VACUUM ANALYZE", "VACUUM FULL large", "VACUUM FULL pg_class", "VACUUM FULL pg_attribute",
	"INSERT INTO large (text, list, place) SELECT md5(n::text), ARRAY[n], point(n, n) FROM generate_series(1, 500) n",
	"INSERT INTO small (text, list, place) SELECT md5(n::text), ARRAY[n], point(n, n) FROM generate_series(1, 500) n",
	"REINDEX TABLE small", "CREATE TABLE more AS SELECT * FROM large", "ALTER TABLE more ADD made timestamptz DEFAULT now()",
	"TRUNCATE small", "DROP TABLE more", "SELECT lo_from_bytea(0, repeat('x', 10000)::bytea)", "DELETE FROM large WHERE id > 1000",
	"VACUUM (TRUNCATE) large",
}

// dumped is a dump of the database that is had back, without the values of sequences: a replayed one is up to 32 values further.
func (x others) dumped(t *testing.T) string {
	t.Helper()
	return values.ReplaceAllString(x.Dumped(t, x.of), "")
}

var values = regexp.MustCompile(`(?m)^SELECT pg_catalog\.setval.*$`)

// Whatever others do to their databases after the copy of the server is replayed past, though most of their files are left out.
func TestOthersChangeBeforeAMoment(t *testing.T) {
	t.Parallel()
	x := others{&archived{Stack: agenttest.Archived(t)}}
	_, log, _ := x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	space := t.TempDir()
	data := check.Must(os.Stat(x.One(t, "SHOW data_directory")))(t).Sys().(*syscall.Stat_t)
	check.NoError(t, os.Chown(space, int(data.Uid), int(data.Gid)))
	x.server(t, "CREATE TABLESPACE space LOCATION '"+space+"'")
	all := []string{"stays", "moves", "returns", "goes"}
	for _, name := range all {
		x.server(t, "CREATE DATABASE "+name)
		x.in(t, name, ofAllKinds)
	}
	x.in(t, "stays", "CREATE TABLE there (id serial PRIMARY KEY) TABLESPACE space", "INSERT INTO there DEFAULT VALUES")
	x.server(t, "ALTER DATABASE returns SET TABLESPACE space")
	x.create(t)

	x.server(t, "CREATE DATABASE by_file TEMPLATE stays STRATEGY file_copy",
		"CREATE DATABASE by_log TEMPLATE stays STRATEGY wal_log", "ALTER DATABASE moves SET TABLESPACE space",
		"ALTER DATABASE returns SET TABLESPACE pg_default", "CREATE DATABASE new TABLESPACE space")
	for _, name := range []string{"stays", "by_file", "by_log", "moves", "returns"} {
		x.in(t, name, changes...)
	}
	x.in(t, "stays", "INSERT INTO there DEFAULT VALUES", "ALTER TABLE there SET TABLESPACE pg_default", "VACUUM FULL there")
	x.server(t, "CHECKPOINT", "DROP DATABASE goes", "DROP DATABASE by_file")
	x.in(t, "new", ofAllKinds)
	x.in(t, "stays", changes...)

	owner := x.Owner(t, x.of)
	check.Must(owner.Exec("INSERT INTO things (name) VALUES ('before')"))(t)
	want := x.dumped(t)
	check.NoError(t, owner.QueryRow("SELECT clock_timestamp() FROM pg_sleep(0.01)").Scan(&x.at))
	check.Must(owner.Exec("DROP TABLE things"))(t)
	x.server(t, "CHECKPOINT", "DROP DATABASE moves")
	x.restored(t, agenttest.NewUUID(), agenttest.BackupName, x.at)
	if got := x.dumped(t); got != want {
		t.Error(cmp.Diff(want, got))
	}
	for _, line := range log.All() {
		if strings.Contains(line.Message, "takes longer") {
			t.Errorf("the files were not left out: %s %v", line.Message, line.ContextMap())
		}
	}
}
