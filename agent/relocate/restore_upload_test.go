package relocate_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// sleeping is an upload whose code sleeps for as long as a condition holds.
func sleeping(condition string) []byte {
	return agenttest.Dump(`CREATE TABLE word (said text); INSERT INTO word VALUES ('old');
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
		return r.One(t, dozes, "restore_"+agenttest.Compact(operation)) == "1"
	})
	r.ServerDown(t)
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
			working := r.Child(t, "")
			defer working.Kill()
			u := r.Sent(t, r.w, sleeping("NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'wake')"))
			operation := agenttest.NewUUID()
			r.Done(t, u.Load(operation))
			for range c.downs {
				r.goesDownOver(t, operation)
			}
			if c.state == command.LoadReady {
				check.Must(r.Super.Exec("CREATE ROLE wake"))(t)
			}
			ended := func(l command.LoadReport) bool { return l.State != command.LoadRunning }
			report := agenttest.Outcome(t, r.Stack, u.Load(operation), ended)
			if report.State != c.state {
				t.Fatalf("%+v", report)
			}
			if c.state == command.LoadReady {
				check.Must(r.Super.Exec("DROP ROLE wake"))(t)
				r.Marked(t, operation)
				r.Done(t, r.w.Switching(operation))
				r.Discarded(t, r.w, operation)
			} else {
				r.gaveUp(t, operation, report)
			}
			r.serves(t, c.word)
			r.Ask(t, u.Drop())
			if left := r.UploadsLeft(t, u); left != "" {
				t.Error(left)
			}
			r.NoOrphans(t)
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
	r.NothingOf(t, operation)
	r.Done(t, agenttest.Closing(operation))
	r.RefusedFor(t, command.ReasonClosed, r.w.Switching(operation))
}
