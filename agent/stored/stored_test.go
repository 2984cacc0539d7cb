package stored_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// Values that are much longer than they are stored count by what they are.
func TestSettings(t *testing.T) {
	in := clustertest.NewDatabase(t)
	db := in.Open(t)
	t.Cleanup(func() {
		clustertest.Exec(t, in.Cluster.URL("postgres"), `DROP ROLE one_who_stores, another_who_stores`)
	})
	check.Must(db.Exec(`CREATE ROLE one_who_stores; CREATE ROLE another_who_stores`))(t)
	of := `ALTER ROLE one_who_stores IN DATABASE ` + in.Name
	many := func(n string) string {
		return `DO $$ BEGIN FOR n IN 1..` + n + ` LOOP EXECUTE '` + of + ` SET x.n' || n || ' = 1'; END LOOP; END $$`
	}
	long := func(value string) string {
		return `DO $$ BEGIN EXECUTE format('` + of + ` SET x.y = %L', ` + value + `); END $$`
	}
	read := func() []stored.Setting {
		var database uint32
		var one int64
		const query = `SELECT d.oid, 'one_who_stores'::regrole::oid::bigint FROM pg_database d WHERE d.datname = current_database()`
		check.NoError(t, db.QueryRow(query).Scan(&database, &one))
		return check.Must(stored.Settings(t.Context(), db, database, []int64{0, one}))(t)
	}
	excess := []stored.Setting{{Role: "one_who_stores"}}
	reset := of + ` RESET ALL; ALTER DATABASE ` + in.Name + ` RESET ALL`
	for name, c := range map[string]struct {
		store string
		want  []stored.Setting
	}{
		"none, but another's": {`ALTER ROLE another_who_stores IN DATABASE ` + in.Name + ` SET x.y = 1`, nil},
		"some": {
			`ALTER DATABASE ` + in.Name + ` SET x.y = 'all'; ` + of + ` SET x.y = 'a=b'; ` + of + ` SET search_path = a, "B c"`,
			[]stored.Setting{{"", "x.y", "all"}, {"one_who_stores", "x.y", "a=b"}, {"one_who_stores", "search_path", `a, "B c"`}},
		},
		"one too many": {many("201"), excess},
		"as long as may be": {
			long(`repeat('x', 65536 - 4)`), []stored.Setting{{"one_who_stores", "x.y", strings.Repeat("x", 65532)}},
		},
		"a byte too long":                 {long(`repeat('x', 65536 - 3)`), excess},
		"far too long":                    {long(`repeat('x', 2000000)`), excess},
		"too long, and of no repetitions": {long(`(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 5000) n)`), excess},
	} {
		check.Must(db.Exec(reset))(t)
		check.Must(db.Exec(c.store))(t)
		if diff := cmp.Diff(c.want, read()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	check.Must(db.Exec(reset))(t)
	check.Must(db.Exec(many("200")))(t)
	if n := len(read()); n != stored.Most {
		t.Errorf("of as many as may be, %d are read", n)
	}
}

// What an agent may store for a login is what every login may, of what the server knows.
func TestStorable(t *testing.T) {
	tx := check.Must(clustertest.NewDatabase(t).Open(t).Begin())(t)
	defer tx.Rollback()
	check.Must(tx.Exec("SET LOCAL ROLE pg_monitor"))(t)
	for name, want := range map[string]bool{
		"work_mem": true, "DateStyle": true, "local_preload_libraries": true, "log_statement": false, "port": false,
		"unheard_of": false, "x.own": false,
	} {
		if got := check.Must(stored.Storable(t.Context(), tx, name))(t); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
