package backup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// storing has a login store a value for itself in the world's database.
func (w *world) storing(name, value string) string {
	return `DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET ` + name + ` = %L', '` + w.Name + `', ` +
		value + `); END $$`
}

// Any login of the server can store settings in any database. A backup has those of the database's own logins, as far as they are
// not too long, and says where they are.
func TestSettingsInABackup(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (a int)`)
	elsewhere, super := clustertest.NewDatabase(t), w.Cluster.URL("postgres")
	clustertest.Exec(t, super, `CREATE ROLE stranger LOGIN PASSWORD '`+backuptest.Password+`'`)
	t.Cleanup(func() { clustertest.Exec(t, super, `DROP ROLE stranger`) })
	for _, name := range []string{"application_name", "search_path"} {
		url := w.Cluster.URLFor("stranger", backuptest.Password, elsewhere.Name)
		w.PSQL(url, w.storing(name, `repeat('x', 1000000)`))
	}
	req := w.Request()
	req.Verify = false
	have := func() []core.Setting {
		made := check.Must(w.Run(w.Agent, req))(t)
		check.NoError(t, w.Agent.Discard(t.Context(), req))
		return made.Manifest.Settings
	}
	want := []core.Setting{{Name: "statement_timeout", Value: "1ms"}, {Login: "shop", Name: "work_mem", Value: "8MB"}}
	if diff := cmp.Diff(want, have()); diff != "" {
		t.Error(diff)
	}
	w.PSQL(w.Patient("shop"), w.storing("application_name", `repeat('x', 1000000)`))
	want[1] = core.Setting{Login: "shop"}
	if diff := cmp.Diff(want, have()); diff != "" {
		t.Error(diff)
	}
}

// What a customer can make much of in little space fails the backup, and its text says so: 300 MB of comments take 4 MB of disk.
func TestBoundsOfABackup(t *testing.T) {
	const comment = `CREATE TABLE t (a int, b int, c int, d int, e int);
		DO $$ DECLARE c text; BEGIN FOREACH c IN ARRAY string_to_array('%of', ',') LOOP
			EXECUTE format('COMMENT ON COLUMN t.%I IS %L', c, repeat('x', %long)); END LOOP; END $$`
	for name, c := range map[string]struct{ of, long, want string }{
		"comments":  {"a,b,c,d,e", "60000000", "its definitions and comments take more than 256 MiB"},
		"a comment": {"a", "70000000", "a definition or comment is longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(strings.NewReplacer("%of", c.of, "%long", c.long).Replace(comment))
			_, err := w.Run(w.Agent, w.Request())
			if err == nil || err.Error() != "the database has more than a backup takes: "+c.want {
				t.Errorf("%v", err)
			}
			w.LeavesNothing()
		})
	}
}
