package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

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
	s := ownStack(t)
	maker := s.child(t, "")
	s.startBouncer(t, t.Context())
	w := s.made(t, database.Managed)
	maker.kill()
	then := []func(*testing.T, wanted, string, protocol.Command){
		func(t *testing.T, w wanted, _ string, c protocol.Command) {
			s.wantChanged(t, w, c, extension.PgTrgm)
			s.refusedFor(t, command.ReasonCompleted, closing(c.OperationID))
		},
		s.closedOrDone,
	}
	each := func(name string, try func(t *testing.T, c protocol.Command)) {
		t.Run(name, func(t *testing.T) {
			try(t, w.change(extension.Install, extension.PgTrgm))
			check.Must(s.superIn(t, w).Exec("DROP TABLE IF EXISTS words; DROP EXTENSION IF EXISTS pg_trgm"))(t)
		})
	}
	points := pointsOf(t, "extension")
	for i, point := range []string{crash.BackupAdmitted, crash.BackupFinished, crash.BackupReply} { // those of every job
		if turn(i, 2, 3) {
			points = append(points, point)
		}
	}
	for i, point := range points {
		for n, follow := range then {
			if !turn(i+1, n, len(then)) {
				continue
			}
			each(fmt.Sprint(point, " ", n), func(t *testing.T, c protocol.Command) {
				s.child(t, point).diesOver(t, s, c)
				next := s.child(t, "")
				follow(t, w, point, c)
				s.noChangeLogins(t)
				next.kill()
			})
		}
	}
	each("the owner undoes it", func(t *testing.T, c protocol.Command) { s.doneOnce(t, w, c) })
	each("PostgreSQL crashes", func(t *testing.T, c protocol.Command) { s.serverCrashInAChange(t, w, c) })
	s.noOrphans(t)
}

// closedOrDone closes a change whose agent died at a point.
func (s *stack) closedOrDone(t *testing.T, w wanted, point string, c protocol.Command) {
	t.Helper()
	if slices.Contains([]string{crash.ExtensionCommitted, crash.BackupFinished, crash.BackupReply}, point) {
		s.refusedFor(t, command.ReasonCompleted, closing(c.OperationID))
		return
	}
	s.done(t, closing(c.OperationID))
	s.refusedFor(t, command.ReasonClosed, c)
	if e := s.extensionOf(t, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it stands: %+v", e)
	}
}

// PostgreSQL crashes with the change made and not committed, while the agent stands still. It is found to be undone, and made.
func (s *stack) serverCrashInAChange(t *testing.T, w wanted, c protocol.Command) {
	t.Helper()
	working := s.child(t, crash.Stop+crash.ExtensionMade)
	go func() { _, _, _ = s.send(c) }() // it is sent again
	working.stopped(t)
	check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
	working.thaw(t)
	var report command.ExtensionReport
	check.Eventually(t, "the change is not made after the crash", func() bool {
		result, reason, err := s.send(c)
		return err == nil && reason == "" && json.Unmarshal(result, &report) == nil && report.State != command.ExtensionRunning
	})
	if report.State != command.ExtensionDone || !report.Changed {
		t.Errorf("%+v", report)
	}
	s.wantInUse(t, w, extension.PgTrgm)
	s.noChangeLogins(t)
	working.kill()
}

// What was committed stays done, also where the owner undoes it before the next agent looks.
func (s *stack) doneOnce(t *testing.T, w wanted, c protocol.Command) {
	t.Helper()
	s.child(t, crash.ExtensionCommitted).diesOver(t, s, c)
	check.Must(s.owner(t, w).Exec("DROP EXTENSION pg_trgm"))(t)
	next := s.child(t, "")
	if got := s.changedBy(t, c); got.State != command.ExtensionDone || !got.Changed {
		t.Errorf("%+v", got)
	}
	if e := s.extensionOf(t, w, extension.PgTrgm); e.InstalledVersion != "" {
		t.Errorf("it was installed again: %+v", e)
	}
	next.kill()
}
