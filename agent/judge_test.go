package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
)

// pg_dump says its version as the user that it dumps as, and not as root.
func TestPgDumpIsAskedAsItDumps(t *testing.T) {
	dir, asker := t.TempDir(), os.Geteuid()
	check.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	script := filepath.Join(dir, "pg_dump")
	check.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"pg_dump (PostgreSQL) 99.1 by $(id -u)\"\n"), 0o755))
	if asker == 0 {
		asker = 65534
	}
	c := Config{PgDump: script, PoolerOwner: &pooler.Owner{UID: 65534, GID: 65534}}
	found, err := c.dumpTool().Version(t.Context())
	if want := fmt.Sprint("pg_dump (PostgreSQL) 99.1 by ", asker); found.Text != want {
		t.Errorf("%q, want %q (%v)", found.Text, want, err)
	}
}
