package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
)

func TestWhichVersionsFit(t *testing.T) {
	type number = floors.Number
	t.Setenv(BindirVariable, "")
	usual, _ := serverFits()
	t.Setenv(BindirVariable, "/anywhere")
	ordered, _ := serverFits()
	for _, c := range []struct {
		fits func(number) bool
		v    number
		want bool
	}{
		{usual, number{15, 18}, false}, {usual, number{16, 0}, true}, {usual, number{17, 1}, false},
		{ordered, number{15, 18}, false}, {ordered, number{16, 0}, true}, {ordered, number{18, 1}, true},
		{ordered, number{19, 0}, false},
		{clientOf(16), number{15, 18}, false}, {clientOf(16), number{16, 0}, true}, {clientOf(16), number{17, 1}, true},
		{clientOf(18), number{17, 12}, false}, {clientOf(18), number{18, 6}, true},
		{pooler1241, number{1, 24, 0}, false}, {pooler1241, number{1, 24, 1}, true}, {pooler1241, number{1, 25, 0}, true},
		{pooler1241, number{1, 9, 9}, false}, {pooler1241, number{2, 0, 0}, true},
		{archiver2551, number{2, 45, 0}, false}, {archiver2551, number{2, 55, 1}, true}, {archiver2551, number{2, 60, 0}, true},
	} {
		if got := c.fits(c.v); got != c.want {
			t.Errorf("%v fits: %v, want %v", c.v, got, c.want)
		}
	}
}

// plant makes a folder of programs that answer --version only.
func plant(t *testing.T, dir string, versions map[string]string) string {
	t.Helper()
	check.NoError(t, os.MkdirAll(dir, 0o755))
	for name, version := range versions {
		script := fmt.Sprintf("#!/bin/sh\necho '%s %s'\n", name, version)
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func server(v string) map[string]string {
	return map[string]string{"initdb": v, "postgres": v, "pg_ctl": v}
}

func TestBindirIsAnOrder(t *testing.T) {
	root := t.TempDir()
	plant(t, filepath.Join(root, Dir, "server", "bin"), server("16.1"))
	for planted, found := range map[string]bool{"16.3": true, "15.9": false} {
		dir := plant(t, t.TempDir(), server(planted))
		t.Setenv("PGHERD_PG_BINDIR", dir)
		tools, missing := Look(root)
		if got := tools.Postgres == filepath.Join(dir, "postgres"); got != found {
			t.Errorf("PostgreSQL %s in PGHERD_PG_BINDIR taken: %v, want %v", planted, got, found)
		}
		if got := len(missing) > 0 && missing[0].Part == Server; got == found {
			t.Errorf("PostgreSQL %s in PGHERD_PG_BINDIR missing: %v, want %v", planted, got, !found)
		}
	}
}

// A newer server is taken where PGHERD_PG_BINDIR says so, with a pg_dump that takes it.
func TestAnotherVersionHasItsOwnClient(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	root := t.TempDir()
	for part, version := range map[string]string{"client": "17.12", "client-18": "18.6"} {
		plant(t, filepath.Join(root, Dir, part, "bin"), map[string]string{"pg_dump": version, "psql": version})
	}
	for _, major := range []int{16, 17, 18} {
		t.Setenv("PGHERD_PG_BINDIR", plant(t, t.TempDir(), server(fmt.Sprintf("%d.4", major))))
		tools, missing := Look(root)
		part := map[bool]string{true: "client-18", false: "client"}[major == 18]
		if tools.Major != major || tools.PgDump != filepath.Join(root, Dir, part, "bin", "pg_dump") {
			t.Errorf("PostgreSQL %d: %+v, missing %v", major, tools, missing)
		}
	}
	check.NoError(t, os.RemoveAll(filepath.Join(root, Dir, "client-18")))
	if _, missing := Look(root); !slices.ContainsFunc(missing, func(m *Missing) bool { return m.Part == Client18 }) {
		t.Errorf("missing %v", missing)
	}
}

func TestProgramsOfDifferentBuildsAreNotMixed(t *testing.T) {
	versions := server("16.3")
	delete(versions, "pg_ctl")
	t.Setenv("PGHERD_PG_BINDIR", plant(t, t.TempDir(), versions))
	tools, missing := Look("")
	if tools.Initdb != "" || len(missing) == 0 || !strings.Contains(missing[0].Error(), "pg_ctl") {
		t.Errorf("initdb %q, missing %v", tools.Initdb, missing)
	}
}

func TestFetchedToolsAreFound(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	t.Setenv("PGHERD_PGBOUNCER", "")
	t.Setenv("PGHERD_PGBACKREST", "")
	root := t.TempDir()
	plant(t, filepath.Join(root, Dir, "client", "bin"), map[string]string{
		"pg_dump": "99.1", "psql": "99.1", "pgbouncer": "99.1.0", "pgbackrest": "99.1.0",
	})
	tools, missing := Look(root)
	for _, m := range missing {
		if m.Part == Client {
			t.Errorf("not found: %v", m)
		}
	}
	if tools.PgBackRest == "" || tools.PgBouncer == "" || tools.PgDump == "" {
		t.Errorf("tools are %+v", tools)
	}
}

func TestErrorIsOneLineThatSaysWhatToDo(t *testing.T) {
	t.Setenv("PGHERD_PG_BINDIR", t.TempDir())
	_, err := Find()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "make toolchain") {
		t.Errorf("error is %v", err)
	}
}

func TestFindWorksInAnyFolder(t *testing.T) {
	root := check.Must(Root())(t)
	t.Chdir(filepath.Join(root, "hosts"))
	if again, err := Root(); err != nil || again != root {
		t.Errorf("root is %s, want %s (%v)", again, root, err)
	}
	t.Chdir("/")
	if outside, err := Root(); err == nil {
		t.Errorf("root of / is %s", outside)
	}
}
