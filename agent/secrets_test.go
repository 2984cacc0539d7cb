package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Even a server that logs every statement, and every one that fails, logs no verifier and no password.
func TestServerLogHoldsNoSecret(t *testing.T) {
	pg := clustertest.New(t, map[string]string{
		"log_statement": "all", "log_min_duration_statement": "0", "log_min_error_statement": "debug5",
		"log_transaction_sample_rate": "1",
	})
	s := newStack(t, pg, t.TempDir())
	s.startAgent(t, t.Context())
	s.startBouncer(t, t.Context())
	w := s.filledDatabase(t)
	if report := s.backedUp(t, w.backup(newUUID(), backupName, true)); report.State != protocol.BackupDone {
		t.Fatalf("%+v", report)
	}
	s.done(t, w.access(2, false, true))
	s.done(t, w.access(3, true, false))
	role := s.opened(t, w.additional(1, protocol.ProfileReadOnly))
	rotated := role.renewed()
	s.done(t, role.rotate(2, rotated))
	s.wantCondition(t, rotated, protocol.ConditionInForce)
	s.done(t, rotated.shut(protocol.LoginRevoke, 3))
	s.removed(t, rotated.remove(4))
	taken := want(database.Managed)
	must(s.super.Exec("CREATE ROLE " + taken.names().WriteGroup))(t)
	s.refusedFor(t, protocol.ReasonNameTaken, taken.create())

	log := string(must(os.ReadFile(filepath.Join(s.one(t, "SHOW data_directory"), "..", "postgres.log")))(t))
	if !strings.Contains(log, "CREATE TABLE things") {
		t.Fatal("the log does not hold the statements of customers")
	}
	for what, secret := range map[string]string{
		"verifier": w.verifiers[database.OwnerLogin], "verifier of a refused create": taken.verifiers[database.RuntimeLogin],
		"password": w.passwords[database.OwnerLogin], "any verifier": "SCRAM-SHA-256$4096",
		"password of a role": role.password, "new password of a role": rotated.password,
	} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, secret) {
				t.Errorf("%s: %s", what, line)
				break
			}
		}
	}
}
