// Package toolchain finds the programs that the dev host and the tests run: PostgreSQL 16, or another supported version where
// PGHERD_PG_BINDIR says so, pg_dump and psql of that version or later,
// PgBouncer 1.24.1 or later (the first with KILL_CLIENT), and pgBackRest 2.55.1 or later (Debian stable's).
//
// Each is looked for on the machine first (PGHERD_PG_BINDIR, pg_config, the usual folders, PATH) and then in the folder
// .toolchain of the repository, where "make toolchain" puts what the machine lacks.
package toolchain

import (
	"errors"
	"os"
	"path/filepath"
)

// Tools are absolute paths of programs whose versions were checked.
type Tools struct {
	Major      int // the major version of Postgres
	Initdb     string
	Postgres   string
	PgCtl      string
	PgDump     string
	Psql       string
	PgBouncer  string
	PgBackRest string
}

// Dir is the folder, below the root of the repository, that holds fetched tools.
const Dir = ".toolchain"

// Find returns the tools for the repository that the working directory is in, so it works in a test of any package. Outside a
// repository it looks on the machine only. The error is one line that names the missing program and what to do.
func Find() (Tools, error) {
	root, err := Root()
	if err != nil {
		root = ""
	}
	tools, missing := Look(root)
	if len(missing) > 0 {
		return Tools{}, missing[0]
	}
	return tools, nil
}

// Root is the nearest folder at or above the working directory that holds a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod at or above the working directory")
		}
		dir = parent
	}
}
