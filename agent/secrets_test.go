package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
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
	s := agenttest.New(t, pg, t.TempDir()).Start(t)
	for _, name := range []string{"log_min_messages", "log_min_error_statement"} {
		check.Must(s.Super.Exec("ALTER ROLE ALL RESET " + name))(t)
	}
	w := s.FilledDatabase(t)
	s.WantBackup(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true), command.BackupDone, "")
	s.Done(t, w.Access(2, false, true))
	s.Done(t, w.Access(3, true, false))
	reader := s.Opened(t, w.Additional(1, role.ReadOnly))
	rotated := reader.Renewed()
	s.Done(t, reader.Rotate(2, rotated))
	s.WantCondition(t, rotated, command.LoginInForce)
	s.Done(t, rotated.Shut(role.Revocation, 3))
	s.Removed(t, rotated.Remove(4))
	taken := agenttest.Want(database.Managed)
	check.Must(s.Super.Exec("CREATE ROLE " + taken.Names().WriteGroup))(t)
	s.RefusedFor(t, command.ReasonNameTaken, taken.Create())

	log := string(check.Must(os.ReadFile(filepath.Join(s.One(t, "SHOW data_directory"), "..", "postgres.log")))(t))
	if !strings.Contains(log, "CREATE TABLE things") {
		t.Fatal("the log does not hold the statements of customers")
	}
	for what, secret := range map[string]string{
		"verifier": w.Verifiers[database.OwnerLogin], "verifier of a refused create": taken.Verifiers[database.RuntimeLogin],
		"password": w.Passwords[database.OwnerLogin], "any verifier": "SCRAM-SHA-256$4096",
		"password of a role": reader.Password, "new password of a role": rotated.Password,
	} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, secret) {
				t.Errorf("%s: %s", what, line)
				break
			}
		}
	}
}
