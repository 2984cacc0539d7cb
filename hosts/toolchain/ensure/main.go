// Command ensure makes sure that the tools are there: it prints their paths, or fetches what is missing and looks again. It is
// what "make toolchain" runs, from the root of the repository. Two runs at once wait for each other.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "toolchain:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := toolchain.Root()
	if err != nil {
		return err
	}
	tools, missing := toolchain.Look(root)
	if len(missing) > 0 {
		if tools, err = fetchMissing(root); err != nil {
			return err
		}
	}
	fmt.Printf("initdb    %s\npostgres  %s\npg_ctl    %s\npg_dump   %s\npsql      %s\npgbouncer %s\n",
		tools.Initdb, tools.Postgres, tools.PgCtl, tools.PgDump, tools.Psql, tools.PgBouncer)
	return nil
}

// fetchMissing looks again under the lock, since another run may just have fetched what was missing.
func fetchMissing(root string) (toolchain.Tools, error) {
	unlock, err := lock(filepath.Join(root, toolchain.Dir))
	if err != nil {
		return toolchain.Tools{}, err
	}
	defer unlock()
	tools, missing := toolchain.Look(root)
	if len(missing) == 0 {
		return tools, nil
	}
	args := []string{filepath.Join(root, toolchain.Dir)}
	for _, m := range missing {
		args = append(args, string(m.Part))
	}
	fetch := exec.Command(filepath.Join(root, "hosts", "toolchain", "fetch.sh"), args...)
	fetch.Stdout, fetch.Stderr = os.Stderr, os.Stderr
	if err := fetch.Run(); err != nil {
		return toolchain.Tools{}, errors.New("could not fetch what is missing (reason above)")
	}
	if tools, missing = toolchain.Look(root); len(missing) > 0 {
		return toolchain.Tools{}, fmt.Errorf("fetched, but %s still does not run", missing[0].What)
	}
	return tools, nil
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
