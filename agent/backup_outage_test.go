package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// hanging are the copies in which a customer's code sleeps.
func (s *stack) hanging(t testing.TB, n int) (copies string) {
	t.Helper()
	const query = `SELECT coalesce(string_agg(datname, ' '), '') FROM pg_stat_activity
		WHERE datname LIKE 'verify\_%' AND wait_event = 'PgSleep'`
	check.Eventually(t, "the verifications do not hang", func() bool {
		copies = s.one(t, query)
		return len(strings.Fields(copies)) == n
	})
	return copies
}

// serverDown has PostgreSQL crash, as when the kernel kills one of its sessions.
func (s *stack) serverDown(t testing.TB) {
	t.Helper()
	check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate))
}

func copyOf(c protocol.Command) string { return "verify_" + id.Compact(id.OperationID(c.OperationID)) }

// endsWith waits for the end of a backup over whose attempts PostgreSQL or the agent was down.
func (s *stack) endsWith(t testing.TB, c protocol.Command) command.BackupReport {
	t.Helper()
	return outcome(t, s, c, func(r command.BackupReport) bool { return r.State != command.BackupRunning })
}

// outcome waits for the end of a job over whose attempts PostgreSQL or the agent was down, so that a command may be refused.
func outcome[R any](t testing.TB, s *stack, c protocol.Command, ended func(R) bool) (report R) {
	t.Helper()
	check.Eventually(t, "the job does not end", func() bool {
		result, reason, err := s.send(c)
		if err != nil || reason != "" && !strings.HasPrefix(reason, string(command.ReasonUnavailable)) {
			t.Fatal(reason, err)
		}
		return reason == "" && json.Unmarshal(result, &report) == nil && ended(report)
	})
	return report
}

// A customer's code that brings PostgreSQL down wherever the file is restored does so three times. A backup that was being
// verified meanwhile is not given up with it.
func TestABackupThatBringsPostgreSQLDownEnds(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	const untilReleased = "WHILE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'release') LOOP PERFORM pg_sleep(0.05); END LOOP"
	guilty, innocent := s.trappedDatabase(t, "PERFORM pg_sleep(600)"), s.trappedDatabase(t, untilReleased)
	bad, good := guilty.backup(newUUID(), backupName, true), innocent.backup(newUUID(), backupName, true)
	s.done(t, bad)
	s.done(t, good)
	for range 2 {
		s.hanging(t, 2)
		s.serverDown(t)
	}
	first := s.hanging(t, 1)
	s.noneBeside(t)
	if first == copyOf(good) {
		s.release(t, good)
		s.hanging(t, 1)
	}
	s.serverDown(t)

	report := s.endsWith(t, bad)
	const message = "PostgreSQL or its agent went down during 3 attempts at this backup; the last one's restore was in statement "
	const named = `, TABLE DATA public.trapped: "COPY public.trapped (n) FROM stdin;"`
	if report.State != command.BackupNotVerified || report.VerifiedAt != nil || report.SizeBytes == 0 ||
		!strings.Contains(report.Message, message) || !strings.Contains(report.Message, named) {
		t.Errorf("%+v", report)
	}
	if _, err := os.Stat(filepath.Join(s.config.BackupDir, guilty.id, backupName)); err != nil {
		t.Errorf("the file is not kept: %v", err)
	}
	s.release(t, good)
	s.nothingOfBackupsLeft(t)
	s.backsUpAgain(t, s.filledDatabase(t))
}

// noneBeside checks that a last attempt has no other beside it, for longer than the pause before that.
func (s *stack) noneBeside(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := s.one(t, "SELECT count(*) FROM ledger.job WHERE cut_short = 3"); n != "1" {
			t.Fatalf("%s last attempts are made at once", n)
		}
	}
}

// release lets a backup end whose verification waits for it.
func (s *stack) release(t testing.TB, c protocol.Command) {
	t.Helper()
	check.Must(s.super.Exec(`DROP ROLE IF EXISTS release; CREATE ROLE release`))(t)
	if report := s.endsWith(t, c); report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Errorf("%+v", report)
	}
}

// The count outlives the agent, and what the backup had come to decides how it ends.
func TestABackupThatKillsTheAgentEnds(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	w := s.filledDatabase(t)
	maker.kill()
	for name, c := range map[string]struct {
		points  []string
		state   command.BackupState
		message string
		kept    bool
	}{
		"in the dump": {
			[]string{"after-snapshot", "after-login", "after-partial"},
			command.BackupFailed, "PostgreSQL or its agent went down during 3 attempts at this backup", false,
		},
		"in the verification": {
			[]string{"after-snapshot", "verify.database-created", "verify.restored"}, command.BackupNotVerified,
			"the backup file could not be verified: PostgreSQL or its agent went down during 3 attempts at this backup", true,
		},
		"when it was complete": {
			[]string{"verify.role-created", "verify.restored", "after-verified"}, command.BackupDone, "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			backup := w.backup(newUUID(), backupName, true)
			for _, point := range c.points {
				victim := s.child(t, "agent.backup."+point)
				victim.diesOver(t, s, backup)
			}
			s.child(t, "")
			if report := s.endsWith(t, backup); report.State != c.state || report.Message != c.message {
				t.Errorf("%+v", report)
			}
			s.nothingOfBackupsLeft(t)
			if c.kept {
				s.deleteFile(t, w)
			}
			s.noFiles(t, w)
			s.backsUpAgain(t, w)
			s.deleteFile(t, w)
		})
	}
}

// However often the agent is stopped and started, a long backup goes on.
func TestAStopOfTheAgentCutsNoBackupShort(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	w := s.trappedDatabase(t, "PERFORM pg_sleep(600)")
	maker.kill()
	c := w.backup(newUUID(), backupName, true)
	const count = "SELECT cut_short FROM ledger.job WHERE operation_id = $1"
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		_, _, ended := s.started(t, ctx)
		s.done(t, c)
		s.hanging(t, 1)
		if n := s.one(t, count, c.OperationID); n != "1" {
			t.Errorf("%s attempts are in the ledger while one is made", n)
		}
		stop()
		check.NoError(t, <-ended)
		if n := s.one(t, count, c.OperationID); n != "0" {
			t.Errorf("%s attempts are in the ledger after the stop", n)
		}
	}
}
