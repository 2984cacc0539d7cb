package artifact_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// granting returns an agent whose pg_dump is preceded by a customer's grant to the login of the dump. Of the two that run at the
// same time one may fail at that.
func (w *world) granting() *artifact.Backuper {
	w.t.Helper()
	tools, err := toolchain.Find()
	if err != nil {
		w.t.Fatal(err)
	}
	config := w.config()
	config.PgDump = filepath.Join(w.t.TempDir(), "pg_dump")
	const grant = "#!/bin/sh\n'%s' -X -q -d '%s' -c \"GRANT SELECT ON t TO $PGUSER\" 2>/dev/null\nexec '%s' \"$@\"\n"
	script := fmt.Sprintf(grant, tools.Psql, w.patient("shop"), tools.PgDump)
	if err := os.WriteFile(config.PgDump, []byte(script), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return artifact.New(config, w.files)
}

// retiredLogins are those that the ledger knows too, and that nobody can use.
const retiredLogins = `SELECT count(*) FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name
	WHERE NOT rolcanlogin AND NOT rolbypassrls`

// A customer who grants something to the logins of a backup keeps PostgreSQL from dropping them, but no backup from being made.
// They are retired.
func TestGrantsToTheLoginsOfABackupStandInNobodysWay(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (a int); CREATE TABLE held (a int); SELECT lo_create(0)`)
	customer := clustertest.Database{URL: w.patient("shop")}.Open(t)
	open, err := customer.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback()
	agent, granted := w.granting(), false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := agent.Run(ctx, w.request(), func(stage string, percent int, _ command.Bytes) {
		if stage == artifact.StageVerifying && !granted {
			granted = true
			if _, err := open.Exec(`GRANT SELECT ON held TO verify_22222222222242228222222222222222`); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || result.VerifiedAt == nil || !granted {
		t.Fatalf("%+v, %v; granted: %v", result, err, granted)
	}
	if left := w.leftovers(); left != "" {
		t.Error(left)
	}
	var retired int
	admin := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	if err := admin.QueryRow(retiredLogins).Scan(&retired); err != nil {
		t.Fatal(err)
	}
	if retired != 3 {
		t.Errorf("%d logins are retired, want that of each dump and that of the verification", retired)
	}
}
