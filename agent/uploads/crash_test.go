package uploads_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// crashOver has an agent killed at a point while it answers a question.
func crashOver(t *testing.T, s *agenttest.Stack, point string, q command.Question, bytes ...byte) {
	t.Helper()
	victim := s.Child(t, point)
	path, body, err := protocol.WriteQuestion(q)
	check.NoError(t, err)
	if !protocol.HasBody(q) {
		body = bytes
	}
	if status, _, err := s.Request(q.Route().Method, path, body); err == nil {
		t.Fatalf("the agent answered %d before the point was hit", status)
	}
	victim.Died(t)
}

// Whatever point an agent dies at, the next one goes on with the upload as far as it is, or removes it. PostgreSQL may go down
// too.
func TestCrashWhileUploading(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	w := s.Made(t, database.SingleLogin)
	maker.Kill()
	data := agenttest.Dump("CREATE TABLE word (said text);\nINSERT INTO word VALUES ('new');\n")
	for _, point := range agenttest.PointsOf(t, "upload") {
		t.Run(point, func(t *testing.T) {
			u := w.Upload(data)
			half := len(data) / 2
			switch point {
			case "agent.upload.kept", "agent.upload.made":
				crashOver(t, s, point, u.Open(time.Hour))
				half = 0
			case "agent.upload.appended":
				maker := s.Child(t, "")
				s.Ask(t, u.Open(time.Hour))
				maker.Kill()
				crashOver(t, s, point, u.Chunk(0), data[:half]...)
			case "agent.upload.released":
				maker := s.Child(t, "")
				sentTo(t, s, u)
				maker.Kill()
				crashOver(t, s, point, u.Drop())
			}
			check.NoError(t, s.PG.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
			next := s.Child(t, "")
			defer next.Kill()
			if point == "agent.upload.released" {
				check.Eventually(t, "the file stays", func() bool { return s.UploadsLeft(t, u) == "" })
				return
			}
			if got, reason := s.Ask(t, u.Open(time.Hour)); reason != "" || got.ReceivedBytes != int64(half) {
				t.Fatalf("%+v %s", got, reason)
			}
			if got, reason := s.Ask(t, u.Chunk(half), data[half:]...); reason != "" || got.ReceivedBytes != int64(len(data)) {
				t.Fatalf("%+v %s", got, reason)
			}
			operation := agenttest.NewUUID()
			if report := s.Loaded(t, u.Load(operation)); report.State != command.LoadReady {
				t.Errorf("%+v", report)
			}
			s.Done(t, agenttest.Closing(operation))
			s.Ask(t, u.Drop())
			s.NothingOf(t, operation)
		})
	}
	t.Run("stands still", func(t *testing.T) { standsStill(t, s, w) })
	t.Run("expired", func(t *testing.T) { expiredUploads(t, s, w, data) })
}

// sentTo is sent for an upload with a name.
func sentTo(t *testing.T, s *agenttest.Stack, u agenttest.Upload) {
	t.Helper()
	s.Ask(t, u.Open(time.Hour))
	if _, reason := s.Ask(t, u.Chunk(0), u.Data...); reason != "" {
		t.Fatal(reason)
	}
}

// expiredUploads has an upload removed that nobody wants any more; one that an operation loads stays until that is closed.
func expiredUploads(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, data []byte) {
	first := s.Child(t, "")
	abandoned, loading := w.Upload(data), w.Upload(data)
	sentTo(t, s, abandoned)
	sentTo(t, s, loading)
	operation := agenttest.NewUUID()
	s.Loaded(t, loading.Load(operation))
	check.Must(s.Super.Exec("UPDATE ledger.reservation SET kept_until = now() WHERE claimant IN ($1, $2)",
		string(abandoned.ID), string(loading.ID)))(t)
	if _, reason := s.Ask(t, abandoned.Asking()); reason != command.ReasonNotFound {
		t.Errorf("an expired upload: %q", reason)
	}
	first.Kill()
	second := s.Child(t, "") // an agent sweeps when it starts
	check.Eventually(t, "an expired upload stays", func() bool { return s.UploadsLeft(t, abandoned) == "" })
	if left := s.UploadsLeft(t, loading); left != "file" {
		t.Errorf("left of one that is loaded: %q", left)
	}
	s.Done(t, agenttest.Closing(operation))
	second.Kill()
	s.Child(t, "")
	check.Eventually(t, "an upload stays whose restore is closed", func() bool { return s.UploadsLeft(t, loading) == "" })
}
