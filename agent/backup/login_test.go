package backup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// granting returns an agent whose pg_dump is preceded by a customer's grant to the login of the dump. Of the two that run at the
// same time one may fail at that.
func (w *world) granting() *backuptest.Agent {
	w.T.Helper()
	tools := check.Must(toolchain.Find())(w.T)
	config := w.Config()
	config.Path = filepath.Join(w.T.TempDir(), "pg_dump")
	const grant = "#!/bin/sh\n'%s' -X -q -d '%s' -c \"GRANT SELECT ON t TO $PGUSER\" 2>/dev/null\nexec '%s' \"$@\"\n"
	script := fmt.Sprintf(grant, tools.Psql, w.Patient("shop"), tools.PgDump)
	check.NoError(w.T, os.WriteFile(config.Path, []byte(script), 0o700))
	return backuptest.NewAgent(config, w.Files)
}

// retiredLogins are those that the ledger knows too, and that nobody can use.
const retiredLogins = `SELECT count(*) FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name
	WHERE NOT rolcanlogin AND NOT rolbypassrls`

// A customer who grants something to the logins of a backup keeps PostgreSQL from dropping them, but no backup from being made.
// They are retired.
func TestGrantsToTheLoginsOfABackupStandInNobodysWay(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (a int); CREATE TABLE held (a int); SELECT lo_create(0)`)
	customer := clustertest.Database{URL: w.Patient("shop")}.Open(t)
	open := check.Must(customer.Begin())(t)
	defer open.Rollback()
	agent, granted := w.granting(), false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := agent.Run(ctx, w.Request(), func(stage string, percent int, _ command.Bytes) {
		if stage == copies.StageVerifying && !granted {
			granted = true
			if _, err := open.Exec(`GRANT SELECT ON held TO verify_22222222222242228222222222222222`); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || result.VerifiedAt == nil || !granted {
		t.Fatalf("%+v, %v; granted: %v", result, err, granted)
	}
	w.LeavesNothing()
	var retired int
	admin := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	check.NoError(t, admin.QueryRow(retiredLogins).Scan(&retired))
	if retired != 3 {
		t.Errorf("%d logins are retired, want that of each dump and that of the verification", retired)
	}
}
