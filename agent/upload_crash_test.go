package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// crashOver has an agent killed at a point while it answers a question.
func (s *stack) crashOver(t *testing.T, point string, q command.Question, bytes ...byte) {
	t.Helper()
	victim := s.child(t, point)
	path, body, err := protocol.WriteQuestion(q)
	check.NoError(t, err)
	if !protocol.HasBody(q) {
		body = bytes
	}
	if status, _, err := s.request(q.Route().Method, path, body); err == nil {
		t.Fatalf("the agent answered %d before the point was hit", status)
	}
	victim.died(t)
}

// Whatever point an agent dies at, the next one goes on with the upload as far as it is, or removes it. PostgreSQL may go down
// too.
func TestCrashWhileUploading(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	w := s.made(t, database.SingleLogin)
	maker.kill()
	data := zipped("CREATE TABLE word (said text);\nINSERT INTO word VALUES ('new');\n")
	for _, point := range pointsOf(t, "upload") {
		t.Run(point, func(t *testing.T) {
			u := w.upload(data)
			half := len(data) / 2
			switch point {
			case "agent.upload.kept", "agent.upload.made":
				s.crashOver(t, point, u.open(time.Hour))
				half = 0
			case "agent.upload.appended":
				maker := s.child(t, "")
				s.ask(t, u.open(time.Hour))
				maker.kill()
				s.crashOver(t, point, u.chunk(0), data[:half]...)
			case "agent.upload.released":
				maker := s.child(t, "")
				s.sentTo(t, u)
				maker.kill()
				s.crashOver(t, point, u.drop())
			}
			check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
			next := s.child(t, "")
			defer next.kill()
			if point == "agent.upload.released" {
				check.Eventually(t, "the file stays", func() bool { return s.uploadsLeft(t, u) == "" })
				return
			}
			if got, reason := s.ask(t, u.open(time.Hour)); reason != "" || got.ReceivedBytes != int64(half) {
				t.Fatalf("%+v %s", got, reason)
			}
			if got, reason := s.ask(t, u.chunk(half), data[half:]...); reason != "" || got.ReceivedBytes != int64(len(data)) {
				t.Fatalf("%+v %s", got, reason)
			}
			operation := newUUID()
			if report := s.loaded(t, u.load(operation)); report.State != command.LoadReady {
				t.Errorf("%+v", report)
			}
			s.done(t, closing(operation))
			s.ask(t, u.drop())
			s.nothingOf(t, operation)
		})
	}
	t.Run("stands still", func(t *testing.T) { s.standsStill(t, w) })
	t.Run("expired", func(t *testing.T) { s.expiredUploads(t, w, data) })
}

// sentTo is sent for an upload with a name.
func (s *stack) sentTo(t *testing.T, u upload) {
	t.Helper()
	s.ask(t, u.open(time.Hour))
	if _, reason := s.ask(t, u.chunk(0), u.data...); reason != "" {
		t.Fatal(reason)
	}
}

// expiredUploads has an upload removed that nobody wants any more; one that an operation loads stays until that is closed.
func (s *stack) expiredUploads(t *testing.T, w wanted, data []byte) {
	first := s.child(t, "")
	abandoned, loading := w.upload(data), w.upload(data)
	s.sentTo(t, abandoned)
	s.sentTo(t, loading)
	operation := newUUID()
	s.loaded(t, loading.load(operation))
	check.Must(s.super.Exec("UPDATE ledger.reservation SET kept_until = now() WHERE operation_id IN ($1, $2)",
		string(abandoned.id), string(loading.id)))(t)
	if _, reason := s.ask(t, abandoned.asking()); reason != command.ReasonNotFound {
		t.Errorf("an expired upload: %q", reason)
	}
	first.kill()
	second := s.child(t, "") // an agent sweeps when it starts
	check.Eventually(t, "an expired upload stays", func() bool { return s.uploadsLeft(t, abandoned) == "" })
	if left := s.uploadsLeft(t, loading); left != "file" {
		t.Errorf("left of one that is loaded: %q", left)
	}
	s.done(t, closing(operation))
	second.kill()
	s.child(t, "")
	check.Eventually(t, "an upload stays whose restore is closed", func() bool { return s.uploadsLeft(t, loading) == "" })
}

// sleeping is an upload whose code sleeps for as long as a condition holds.
func sleeping(condition string) []byte {
	return zipped(`CREATE TABLE word (said text); INSERT INTO word VALUES ('old');
CREATE FUNCTION public.doze() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
	WHILE ` + condition + ` LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN true; END $$;
CREATE TABLE public.dozing (n int CHECK (public.doze()));
INSERT INTO public.dozing VALUES (1);
`)
}

// goesDownOver has PostgreSQL crash while the copy of an upload is made.
func (r restoreCrash) goesDownOver(t *testing.T, operation string) {
	t.Helper()
	const dozes = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'PgSleep'"
	check.Eventually(t, "the upload's code does not run", func() bool {
		return r.one(t, dozes, "restore_"+compact(operation)) == "1"
	})
	r.serverDown(t)
}

// A load over which PostgreSQL goes down is made again by itself. One over which it goes down each time ends, at the latest when
// that was three times: then the restore has failed, nothing of its copy is left, and the database is as it was.
func TestPostgreSQLCrashesOverAnUpload(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	for name, c := range map[string]struct {
		downs int
		state command.LoadState
		word  string
	}{"once": {1, command.LoadReady, "old"}, "each time": {3, command.LoadFailed, "new"}} {
		t.Run(name, func(t *testing.T) {
			r.renew(t)
			working := r.child(t, "")
			defer working.kill()
			u := r.sent(t, r.w, sleeping("NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'wake')"))
			operation := newUUID()
			r.done(t, u.load(operation))
			for range c.downs {
				r.goesDownOver(t, operation)
			}
			if c.state == command.LoadReady {
				check.Must(r.super.Exec("CREATE ROLE wake"))(t)
			}
			report := outcome(t, r.stack, u.load(operation), func(l command.LoadReport) bool { return l.State != command.LoadRunning })
			if report.State != c.state {
				t.Fatalf("%+v", report)
			}
			if c.state == command.LoadReady {
				check.Must(r.super.Exec("DROP ROLE wake"))(t)
				r.marked(t, operation)
				r.done(t, r.w.switching(operation))
				r.discarded(t, r.w, operation)
			} else {
				r.gaveUp(t, operation, report)
			}
			r.serves(t, c.word)
			r.ask(t, u.drop())
			if left := r.uploadsLeft(t, u); left != "" {
				t.Error(left)
			}
			r.noOrphans(t)
		})
	}
}

// gaveUp demands that a load has ended for PostgreSQL's sake, with nothing left before its operation is closed.
func (r restoreCrash) gaveUp(t *testing.T, operation string, report command.LoadReport) {
	t.Helper()
	const said = "PostgreSQL or its agent went down during 3 attempts at this restore; " +
		"the last one's restore was in statement 5 on line 5"
	if report.Reason != command.ReasonFailed || !strings.HasPrefix(report.Message, said) {
		t.Errorf("%+v", report)
	}
	r.nothingOf(t, operation)
	r.done(t, closing(operation))
	r.refusedFor(t, command.ReasonClosed, r.w.switching(operation))
}
