package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// lacking lists the parts to fetch: those of programs that are missing, and those in use or asked for that are not current.
func lacking(root string, asked []toolchain.Part) (parts []toolchain.Part) {
	tools, missing := toolchain.Look(root)
	for _, m := range missing {
		parts = append(parts, m.Part)
	}
	for _, part := range slices.Concat(inUse(root, tools), asked) {
		if !slices.Contains(parts, part) && !current(root, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// inUse lists the parts that tools come from. Programs of the machine come from none: what was fetched beside them is left
// as it is.
func inUse(root string, tools toolchain.Tools) (parts []toolchain.Part) {
	for _, part := range []toolchain.Part{
		toolchain.Server, toolchain.Server17, toolchain.Server18, toolchain.Client, toolchain.Client18, toolchain.PoolerNext,
		toolchain.ArchiverNext,
	} {
		folder := filepath.Join(root, toolchain.Dir, string(part)) + string(filepath.Separator)
		from := func(path string) bool { return strings.HasPrefix(path, folder) }
		if slices.ContainsFunc([]string{tools.Postgres, tools.PgDump, tools.PgBouncer, tools.PgBackRest}, from) {
			parts = append(parts, part)
		}
	}
	return parts
}

// current reports whether a part was fetched for the pins that hold now: fetch.sh leaves a copy of the part's lock in it.
func current(root string, part toolchain.Part) bool {
	fetched, err := os.ReadFile(filepath.Join(root, toolchain.Dir, string(part), "lock"))
	if err != nil {
		return false
	}
	pinned, err := os.ReadFile(filepath.Join(root, "hosts", "toolchain", string(part)+".lock"))
	return err == nil && bytes.Equal(fetched, pinned)
}
