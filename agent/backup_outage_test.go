package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// hanging are the copies in which a customer's code sleeps.
func hanging(t testing.TB, s *agenttest.Stack, n int) (copies string) {
	t.Helper()
	const query = `SELECT coalesce(string_agg(datname, ' '), '') FROM pg_stat_activity
		WHERE datname LIKE 'verify\_%' AND wait_event = 'PgSleep'`
	check.Eventually(t, "the verifications do not hang", func() bool {
		copies = s.One(t, query)
		return len(strings.Fields(copies)) == n
	})
	return copies
}

func copyOf(c protocol.Command) string { return "verify_" + id.Compact(id.OperationID(c.OperationID)) }

// endsWith waits for the end of a backup over whose attempts PostgreSQL or the agent was down.
func endsWith(t testing.TB, s *agenttest.Stack, c protocol.Command) command.BackupReport {
	t.Helper()
	return agenttest.Outcome(t, s, c, func(r command.BackupReport) bool { return r.State != command.BackupRunning })
}

// A customer's code that brings PostgreSQL down wherever the file is restored does so three times. A backup that was being
// verified meanwhile is not given up with it.
func TestABackupThatBringsPostgreSQLDownEnds(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t).Start(t)
	const untilReleased = "WHILE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'release') LOOP PERFORM pg_sleep(0.05); END LOOP"
	guilty, innocent := trappedDatabase(t, s, "PERFORM pg_sleep(600)"), trappedDatabase(t, s, untilReleased)
	bad := guilty.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	good := innocent.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	s.Done(t, bad)
	s.Done(t, good)
	for range 2 {
		hanging(t, s, 2)
		s.ServerDown(t)
	}
	first := hanging(t, s, 1)
	noneBeside(t, s)
	if first == copyOf(good) {
		release(t, s, good)
		hanging(t, s, 1)
	}
	s.ServerDown(t)

	report := endsWith(t, s, bad)
	const message = "PostgreSQL or its agent went down during 3 attempts at this backup; the last one's restore was in statement "
	const named = `, TABLE DATA public.trapped: "COPY public.trapped (n) FROM stdin;"`
	if report.State != command.BackupNotVerified || report.VerifiedAt != nil || report.SizeBytes == 0 ||
		!strings.Contains(report.Message, message) || !strings.Contains(report.Message, named) {
		t.Errorf("%+v", report)
	}
	s.Keeps(t, guilty, agenttest.BackupName)
	release(t, s, good)
	nothingOfBackupsLeft(t, s)
	backsUpAgain(t, s, s.FilledDatabase(t))
}

// noneBeside checks that a last attempt has no other beside it, for longer than the pause before that.
func noneBeside(t testing.TB, s *agenttest.Stack) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := s.One(t, "SELECT count(*) FROM ledger.job WHERE cut_short = 3"); n != "1" {
			t.Fatalf("%s last attempts are made at once", n)
		}
	}
}

// release lets a backup end whose verification waits for it.
func release(t testing.TB, s *agenttest.Stack, c protocol.Command) {
	t.Helper()
	check.Must(s.Super.Exec(`DROP ROLE IF EXISTS release; CREATE ROLE release`))(t)
	if report := endsWith(t, s, c); report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Errorf("%+v", report)
	}
}

// The count outlives the agent, and what the backup had come to decides how it ends.
func TestABackupThatKillsTheAgentEnds(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	w := s.FilledDatabase(t)
	maker.Kill()
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
			backup := w.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
			for _, point := range c.points {
				victim := s.Child(t, "agent.backup."+point)
				victim.DiesOver(t, s, backup)
			}
			s.Child(t, "")
			if report := endsWith(t, s, backup); report.State != c.state || report.Message != c.message {
				t.Errorf("%+v", report)
			}
			nothingOfBackupsLeft(t, s)
			if c.kept {
				deleteFile(t, s, w)
			}
			s.NoFiles(t, w)
			backsUpAgain(t, s, w)
			deleteFile(t, s, w)
		})
	}
}

// However often the agent is stopped and started, a long backup goes on.
func TestAStopOfTheAgentCutsNoBackupShort(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	w := trappedDatabase(t, s, "PERFORM pg_sleep(600)")
	maker.Kill()
	c := w.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	const count = "SELECT cut_short FROM ledger.job WHERE operation_id = $1"
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		_, _, ended := s.Started(ctx, t)
		s.Done(t, c)
		hanging(t, s, 1)
		if n := s.One(t, count, c.OperationID); n != "1" {
			t.Errorf("%s attempts are in the ledger while one is made", n)
		}
		stop()
		check.NoError(t, <-ended)
		if n := s.One(t, count, c.OperationID); n != "0" {
			t.Errorf("%s attempts are in the ledger after the stop", n)
		}
	}
}
