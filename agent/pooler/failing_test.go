package pooler

import (
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// poison makes PgBouncer, which gets into PostgreSQL as blog, find out that it no longer does, and remember that. The last
// statement lets it in again.
func poison(t *testing.T, s *stack, entry, shut, open string) {
	t.Helper()
	client := s.into(t, entry, "blog")
	check.NoError(t, s.enter(t, entry, "blog", ""))
	execute(t, s, shut)
	execute(t, s, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'blog'")
	check.Eventually(t, "PgBouncer gets into PostgreSQL: the test shows nothing", func() bool { return one(client) != nil })
	execute(t, s, open)
}

// That PgBouncer remembers a failure is no proof, whatever the failure was.
func TestRememberedFailureProvesNothing(t *testing.T) {
	s := realStack(t)
	for entry, c := range map[string]struct{ shut, open string }{
		"blog":             {"ALTER ROLE blog SET local_preload_libraries = 'nothing'", "ALTER ROLE blog RESET ALL"},
		"blog.transaction": {"ALTER ROLE blog NOLOGIN", "ALTER ROLE blog LOGIN"},
	} {
		poison(t, s, entry, c.shut, c.open)
		err := s.pooler.Prove(t.Context(), entry, "blog", "blog-pw")
		if !errors.Is(err, ErrFailing) {
			t.Errorf("%s: %v", entry, err)
		}
		for began := time.Now(); err != nil; err = s.pooler.Prove(t.Context(), entry, "blog", "blog-pw") {
			if !errors.Is(err, ErrFailing) || time.Since(began) > 10*time.Second {
				t.Fatalf("%s: it never works: %v", entry, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// A failure that lasts is told from one that is over.
func TestLastingFailureIsToldByLaterAttempts(t *testing.T) {
	s := realStack(t)
	poison(t, s, "blog", "ALTER ROLE blog SET local_preload_libraries = 'nothing'", "SELECT 1")
	defer execute(t, s, "ALTER ROLE blog RESET ALL")
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(100 * time.Millisecond) {
		if err := s.pooler.Prove(t.Context(), "blog", "blog", "blog-pw"); !errors.Is(err, ErrNoSession) {
			t.Fatal(err)
		}
	}
}

func TestFullEntryIsTold(t *testing.T) {
	s := realStack(t)
	full := func() bool { return check.Must(s.pooler.Full(t.Context(), "shop.transaction"))(t) }
	first := begin(t, s.into(t, "shop.transaction", "shop"))
	if full() {
		t.Error("one of two connections")
	}
	second := begin(t, s.into(t, "shop.transaction", "shop_rt"))
	if !full() {
		t.Error("both connections")
	}
	_, _ = first.Rollback(), second.Rollback()
	if uncapped, err := s.pooler.Full(t.Context(), "pgherd"); err != nil || uncapped {
		t.Errorf("an entry without a cap: %t, %v", uncapped, err)
	}
}

// Who asks for replication is refused, and an ordinary log-in of the same login works a moment later, also where PgBouncer has no
// server connection for it.
func TestReplicationIsRefusedAndForgotten(t *testing.T) {
	s := realStack(t)
	for _, entry := range EntryNames("blog") {
		check.Eventually(t, "nothing is left of the test before", func() bool { return s.enter(t, entry, "blog", "") == nil })
		for _, value := range []string{"true", "database"} {
			fastest := time.Minute
			for range 2 {
				began := time.Now()
				check.NoError(t, s.enter(t, entry, "blog", ""), entry)
				usual := time.Since(began)
				settle(t, s)
				check.Eventually(t, "a server connection is left", func() bool {
					servers := check.Must(s.pooler.serversOf(t.Context(), "blog"))(t)
					return len(servers) == 0
				})
				if s.enter(t, entry, "blog", "replication="+value) == nil {
					t.Errorf("%s: replication=%s is let in", entry, value)
				}
				began = time.Now()
				check.Eventually(t, "an ordinary log-in is refused", func() bool { return s.enter(t, entry, "blog", "") == nil })
				fastest = min(fastest, time.Since(began)-usual)
			}
			if fastest > 700*time.Millisecond { // than it usually takes
				t.Errorf("%s: after replication=%s ordinary log-ins take %s longer", entry, value, fastest)
			}
		}
	}
}
