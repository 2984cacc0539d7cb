package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// fetched makes a repository whose part client was fetched, for the pins "new", and orders its programs: those of the machine
// that runs the test are not looked at.
func fetched(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, part := range []string{"server", "client", "pooler-next", "archiver-next"} {
		put(t, filepath.Join(root, "hosts", "toolchain", part+".lock"), "new")
	}
	bin := filepath.Join(root, toolchain.Dir, "client", "bin")
	for _, name := range []string{"pg_dump", "psql", "pgbouncer", "pgbackrest"} {
		put(t, filepath.Join(bin, name), "#!/bin/sh\necho 99.1.0\n")
	}
	put(t, filepath.Join(root, toolchain.Dir, "client", "lock"), "new")
	t.Setenv(toolchain.BindirVariable, bin)
	t.Setenv(toolchain.PoolerVariable, filepath.Join(bin, "pgbouncer"))
	t.Setenv(toolchain.ArchiverVariable, filepath.Join(bin, "pgbackrest"))
	return root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

func lacks(t *testing.T, what, root string, asked []toolchain.Part, want ...toolchain.Part) {
	t.Helper()
	if got := lacking(root, asked); !slices.Equal(got, want) {
		t.Errorf("%s: lacks %v, want %v", what, got, want)
	}
}

func TestPartOfOtherPinsIsFetchedAgain(t *testing.T) {
	root := fetched(t)
	lacks(t, "fetched for these pins", root, nil, toolchain.Server)
	stamp := filepath.Join(root, toolchain.Dir, "client", "lock")
	put(t, stamp, "old")
	lacks(t, "fetched for older pins", root, nil, toolchain.Server, toolchain.Client)
	check.NoError(t, os.Remove(stamp))
	lacks(t, "fetched before there were stamps", root, nil, toolchain.Server, toolchain.Client)
}

func TestProgramsOfTheMachineNeedNoFetch(t *testing.T) {
	root, machine := fetched(t), t.TempDir()
	for _, name := range []string{"initdb", "postgres", "pg_ctl"} {
		put(t, filepath.Join(machine, name), "#!/bin/sh\necho 16.99\n")
	}
	for _, name := range []string{"pg_dump", "psql", "pgbouncer", "pgbackrest"} {
		put(t, filepath.Join(machine, name), "#!/bin/sh\necho 99.1.0\n")
	}
	t.Setenv(toolchain.BindirVariable, machine)
	t.Setenv(toolchain.PoolerVariable, filepath.Join(machine, "pgbouncer"))
	t.Setenv(toolchain.ArchiverVariable, filepath.Join(machine, "pgbackrest"))
	put(t, filepath.Join(root, toolchain.Dir, "client", "lock"), "old")
	lacks(t, "a part that is not used", root, nil)
}

func TestNextVersionsAreFetchedOnlyWhenAsked(t *testing.T) {
	for _, next := range []toolchain.Part{toolchain.PoolerNext, toolchain.ArchiverNext} {
		root := fetched(t)
		asked := check.Must(partsNamed([]string{string(next)}))(t)
		lacks(t, "asked for", root, asked, toolchain.Server, next)
		put(t, filepath.Join(root, toolchain.Dir, "client", "lock"), "old")
		lacks(t, "asked for, its libraries of older pins", root, asked, toolchain.Server, toolchain.Client, next)
		put(t, filepath.Join(root, toolchain.Dir, string(next), "lock"), "new")
		lacks(t, "fetched", root, asked, toolchain.Server, toolchain.Client)
	}
	if _, err := partsNamed([]string{"pooler"}); err == nil {
		t.Error("an unknown part is taken")
	}
}
