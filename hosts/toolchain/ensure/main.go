// Command ensure makes sure that the tools are there: it prints their paths, or fetches what is missing, or was fetched for
// older pins, and looks again. It is what "make toolchain" runs, from the root of the repository. Arguments name further parts
// to fetch: with pooler-next, the PgBouncer that it looks for is that one, and with archiver-next the pgBackRest. Two runs at
// once wait for each other.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "toolchain:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	root, err := toolchain.Root()
	if err != nil {
		return err
	}
	asked, err := partsNamed(args)
	if err != nil {
		return err
	}
	if len(lacking(root, asked)) > 0 {
		if err := fetchLacking(root, asked); err != nil {
			return err
		}
	}
	for _, next := range []struct {
		part           toolchain.Part
		variable, name string
	}{
		{toolchain.PoolerNext, toolchain.PoolerVariable, "pgbouncer"},
		{toolchain.ArchiverNext, toolchain.ArchiverVariable, "pgbackrest"},
	} {
		if !slices.Contains(asked, next.part) {
			continue
		}
		path := filepath.Join(root, toolchain.Dir, string(next.part), "bin", next.name)
		if err := os.Setenv(next.variable, path); err != nil {
			return err
		}
	}
	tools, missing := toolchain.Look(root)
	if len(missing) > 0 {
		return fmt.Errorf("fetched, but %s does not run", missing[0].What)
	}
	fmt.Printf("initdb     %s\npostgres   %s\npg_ctl     %s\npg_dump    %s\npsql       %s\npgbouncer  %s\npgbackrest %s\n",
		tools.Initdb, tools.Postgres, tools.PgCtl, tools.PgDump, tools.Psql, tools.PgBouncer, tools.PgBackRest)
	return nil
}

// partsNamed adds to the parts named what they need.
func partsNamed(args []string) (parts []toolchain.Part, err error) {
	for _, arg := range args {
		switch part := toolchain.Part(arg); part {
		case toolchain.Server, toolchain.Client, toolchain.Schemas, toolchain.Regression, toolchain.Browser, toolchain.Axe,
			toolchain.ObjectStore, toolchain.Roots, toolchain.Monitoring, toolchain.Server17, toolchain.Server18:
			parts = append(parts, part)
		case toolchain.PoolerNext, toolchain.ArchiverNext, toolchain.Balancer, toolchain.Client18:
			parts = append(parts, toolchain.Client, part)
		default:
			return nil, fmt.Errorf("unknown part %q", arg)
		}
	}
	return parts, nil
}

// fetchLacking looks again under the lock, since another run may just have fetched what was lacking.
func fetchLacking(root string, asked []toolchain.Part) error {
	unlock, err := lock(filepath.Join(root, toolchain.Dir))
	if err != nil {
		return err
	}
	defer unlock()
	parts := lacking(root, asked)
	if len(parts) == 0 {
		return nil
	}
	args := []string{filepath.Join(root, toolchain.Dir)}
	for _, part := range parts {
		args = append(args, string(part))
	}
	fetch := exec.Command(filepath.Join(root, "hosts", "toolchain", "fetch.sh"), args...)
	fetch.Stdout, fetch.Stderr = os.Stderr, os.Stderr
	if err := fetch.Run(); err != nil {
		return errors.New("could not fetch what is missing or out of date (reason above)")
	}
	return nil
}

func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
