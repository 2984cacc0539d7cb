package artifact_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/artifact"
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

// deadLogins are the buried ones, and how many rights they have. That the agent may do what they may is none.
const deadLogins = `SELECT count(*), coalesce(sum(
		(SELECT count(*) FROM pg_auth_members a WHERE a.member = r.oid OR a.roleid = r.oid AND a.member <> 'pgherd_agent'::regrole)
		+ (SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a WHERE a.grantee = r.oid)), 0)
	FROM pg_roles r WHERE rolname ~ '^pgh_dead_' AND NOT rolcanlogin AND NOT rolbypassrls`

// A customer who grants something to the logins of a backup keeps PostgreSQL from dropping them, but no backup from being made.
// What is left of them has no right.
func TestGrantsToTheLoginsOfABackupStandInNobodysWay(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (a int); SELECT lo_create(0)`)
	customer := clustertest.Database{URL: w.patient("shop")}.Open(t)
	open, err := customer.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback()
	agent, granted := w.granting(), false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := agent.Run(ctx, w.request(), func(stage string, percent int) {
		if stage == artifact.StageVerifying && !granted {
			granted = true
			if _, err := open.Exec(`GRANT SELECT ON t TO verify_22222222222242228222222222222222`); err != nil {
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
	var dead, rights int
	admin := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	if err := admin.QueryRow(deadLogins).Scan(&dead, &rights); err != nil {
		t.Fatal(err)
	}
	if dead != 2 || rights != 0 {
		t.Errorf("%d buried logins with %d rights, want that of the dump and that of the verification, with none", dead, rights)
	}
}
