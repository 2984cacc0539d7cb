package extensions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// An agent that is killed at any point of a change leaves no doubt about it, and nothing else: who asks again gets it done, and
// who closes the operation gets it undone or hears that it is done.
func TestCrashWhileChangingAnExtension(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	maker := s.Child(t, "")
	s.StartBouncer(t.Context(), t)
	w := s.Made(t, database.Managed)
	maker.Kill()
	then := []func(*testing.T, agenttest.Wanted, string, protocol.Command){
		func(t *testing.T, w agenttest.Wanted, _ string, c protocol.Command) {
			wantChanged(t, s, w, c, extension.PgTrgm)
			s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(c.OperationID))
		},
		func(t *testing.T, w agenttest.Wanted, point string, c protocol.Command) {
			closedOrDone(t, s, w, point, c)
		},
	}
	each := func(name string, try func(t *testing.T, c protocol.Command)) {
		t.Run(name, func(t *testing.T) {
			try(t, w.Change(extension.Install, extension.PgTrgm))
			check.Must(s.SuperIn(t, w).Exec("DROP TABLE IF EXISTS words; DROP EXTENSION IF EXISTS pg_trgm"))(t)
		})
	}
	points := agenttest.PointsOf(t, "extension")
	for i, point := range []string{crash.BackupAdmitted, crash.BackupFinished, crash.BackupReply} { // those of every job
		if agenttest.Turn(i, 2, 3) {
			points = append(points, point)
		}
	}
	for i, point := range points {
		for n, follow := range then {
			if !agenttest.Turn(i+1, n, len(then)) {
				continue
			}
			each(fmt.Sprint(point, " ", n), func(t *testing.T, c protocol.Command) {
				s.Child(t, point).DiesOver(t, s, c)
				next := s.Child(t, "")
				follow(t, w, point, c)
				noChangeLogins(t, s)
				next.Kill()
			})
		}
	}
	each("the owner undoes it", func(t *testing.T, c protocol.Command) { doneOnce(t, s, w, c) })
	each("PostgreSQL crashes", func(t *testing.T, c protocol.Command) { serverCrashInAChange(t, s, w, c) })
	s.NoOrphans(t)
}

// closedOrDone closes a change whose agent died at a point.
func closedOrDone(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, point string, c protocol.Command) {
	t.Helper()
	if slices.Contains([]string{crash.ExtensionCommitted, crash.BackupFinished, crash.BackupReply}, point) {
		s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(c.OperationID))
		return
	}
	s.Done(t, agenttest.Closing(c.OperationID))
	s.RefusedFor(t, command.ReasonClosed, c)
	if e := extensionOf(t, s, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it stands: %+v", e)
	}
}

// PostgreSQL crashes with the change made and not committed, while the agent stands still. It is found to be undone, and made.
func serverCrashInAChange(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, c protocol.Command) {
	t.Helper()
	working := s.Child(t, crash.Stop+crash.ExtensionMade)
	go func() { _, _, _ = s.Send(c) }() // it is sent again
	working.Stopped(t)
	check.NoError(t, s.PG.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
	working.Thaw(t)
	var report command.ExtensionReport
	check.Eventually(t, "the change is not made after the crash", func() bool {
		result, reason, err := s.Send(c)
		return err == nil && reason == "" && json.Unmarshal(result, &report) == nil && report.State != command.ExtensionRunning
	})
	if report.State != command.ExtensionDone || !report.Changed {
		t.Errorf("%+v", report)
	}
	wantInUse(t, s, w, extension.PgTrgm)
	noChangeLogins(t, s)
	working.Kill()
}

// What was committed stays done, also where the owner undoes it before the next agent looks.
func doneOnce(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, c protocol.Command) {
	t.Helper()
	s.Child(t, crash.ExtensionCommitted).DiesOver(t, s, c)
	check.Must(s.Owner(t, w).Exec("DROP EXTENSION pg_trgm"))(t)
	next := s.Child(t, "")
	if got := changedBy(t, s, c); got.State != command.ExtensionDone || !got.Changed {
		t.Errorf("%+v", got)
	}
	if e := extensionOf(t, s, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it was installed again: %+v", e)
	}
	next.Kill()
}
