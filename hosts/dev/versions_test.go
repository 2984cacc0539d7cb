package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestVersionsWithKnownHolesAreNamedOnce(t *testing.T) {
	program := func(name, version string) string {
		path := filepath.Join(t.TempDir(), name)
		check.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755))
		return path
	}
	tools := toolchain.Tools{
		Postgres:   program("postgres", "postgres (PostgreSQL) 16.1"),
		PgBouncer:  program("pgbouncer", "PgBouncer 99.1.0"),
		PgDump:     program("pg_dump", "pg_dump (PostgreSQL) 17.0 (Debian 17.0-1)"),
		PgBackRest: program("pgbackrest", "pgBackRest 99.1.0"),
	}
	var out bytes.Buffer
	check.NoError(t, sayVersions(t.Context(), &out, tools))
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(said) != 2 || !strings.HasPrefix(said[0], "note: PostgreSQL 16.1 is older than 16.") ||
		!strings.HasPrefix(said[1], "note: pg_dump (PostgreSQL) 17.0 (Debian 17.0-1) is older than 17.") {
		t.Errorf("said:\n%s", out.String())
	}
}
