package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Even a server that logs every statement, and every one that fails, logs no verifier and no password.
func TestServerLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	pg := clustertest.New(t, map[string]string{
		"log_statement": "all", "log_min_duration_statement": "0", "log_min_error_statement": "debug5",
		"log_transaction_sample_rate": "1",
	})
	s := newStack(t, pg, t.TempDir())
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	w := s.filledDatabase(t)
	s.wantBackup(t, w.backup(newUUID(), backupName, true), command.BackupDone, "")
	s.done(t, w.access(2, false, true))
	s.done(t, w.access(3, true, false))
	reader := s.opened(t, w.additional(1, role.ReadOnly))
	rotated := reader.renewed()
	s.done(t, reader.rotate(2, rotated))
	s.wantCondition(t, rotated, command.LoginInForce)
	s.done(t, rotated.shut(role.Revocation, 3))
	s.removed(t, rotated.remove(4))
	taken := want(database.Managed)
	check.Must(s.super.Exec("CREATE ROLE " + taken.names().WriteGroup))(t)
	s.refusedFor(t, command.ReasonNameTaken, taken.create())

	log := string(check.Must(os.ReadFile(filepath.Join(s.one(t, "SHOW data_directory"), "..", "postgres.log")))(t))
	if !strings.Contains(log, "CREATE TABLE things") {
		t.Fatal("the log does not hold the statements of customers")
	}
	for what, secret := range map[string]string{
		"verifier": w.verifiers[database.OwnerLogin], "verifier of a refused create": taken.verifiers[database.RuntimeLogin],
		"password": w.passwords[database.OwnerLogin], "any verifier": "SCRAM-SHA-256$4096",
		"password of a role": reader.password, "new password of a role": rotated.password,
	} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, secret) {
				t.Errorf("%s: %s", what, line)
				break
			}
		}
	}
}
