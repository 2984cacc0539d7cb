package logins_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/database"
)

// attack is one way in which an old password survives its change. It begins before the change with the password that is then in
// force. After the change, with the outcome of that and the login as it is now, it tells whether it has worked.
type attack func(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (
	between func(), worked func(next agenttest.LoginOf, outcome error) bool)

func nothing() {}

// staysConnected keeps clients of the pooler that hold no server connection: it works again as soon as somebody logs in with the
// new password.
func staysConnected(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (func(), func(agenttest.LoginOf, error) bool) {
	t.Helper()
	conn := check.Must(s.Pooled(t, l.Name+".transaction", l.Username, l.Password).Conn(t.Context()))(t)
	check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
	return nothing, func(next agenttest.LoginOf, _ error) bool {
		agenttest.Works(t, "the new password", s.Pooled(t, l.Name+".transaction", l.Username, next.Password))
		_, err := conn.ExecContext(t.Context(), "SELECT 1")
		return err == nil
	}
}

// lastMessage is the write of a log-in through the pooler, with TLS 1.3, that proves the password.
const lastMessage = 6

// standsInTheLogin begins to log in, and goes on after the change.
func standsInTheLogin(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (func(), func(agenttest.LoginOf, error) bool) {
	t.Helper()
	release := make(chan struct{})
	attempt := startLogin(t, s.PooledURL(l.Name+".transaction", l.Username, l.Password), lastMessage, release)
	select {
	case <-attempt.parked:
	case <-time.After(4 * time.Second):
		t.Fatal("the log-in does not stand")
	}
	return nothing, func(next agenttest.LoginOf, _ error) bool {
		agenttest.Works(t, "the new password", s.Pooled(t, l.Name+".transaction", l.Username, next.Password))
		close(release)
		return <-attempt.in
	}
}

// setsItsOwn changes the password from a session that is still open, again and again until it ends.
func setsItsOwn(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (func(), func(agenttest.LoginOf, error) bool) {
	t.Helper()
	mine := l.Renewed()
	conn := check.Must(s.Direct(t, l.Name, l.Username, l.Password).Conn(t.Context()))(t)
	set, ended := make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		for {
			_, err := conn.ExecContext(ctx, "ALTER ROLE CURRENT_USER PASSWORD '"+mine.Verifier+"'")
			if err == nil {
				select {
				case set <- struct{}{}:
				default:
				}
			} else if state := agenttest.SQLState(err); state != "XX000" && state != "55P03" {
				return // not merely in the way of each other
			}
		}
	}()
	<-set
	between := func() { <-set; <-set } // the first may be of before
	return between, func(agenttest.LoginOf, error) bool {
		for range 2 { // once more after the change, if the session is still there; the first may be of before
			select {
			case <-set:
			case <-ended:
			}
		}
		stop()
		<-ended
		_, err := s.Direct(t, l.Name, l.Username, mine.Password).ExecContext(t.Context(), "SELECT 1")
		return err == nil
	}
}

// leavesAChangeOpen holds the row of the role in a transaction. It has worked where the change spent its time waiting for that.
func leavesAChangeOpen(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (func(), func(agenttest.LoginOf, error) bool) {
	t.Helper()
	tx := check.Must(s.Direct(t, l.Name, l.Username, l.Password).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("ALTER ROLE CURRENT_USER PASSWORD NULL"))(t)
	var pid int
	check.NoError(t, tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
	ctx, stop := context.WithCancel(context.Background())
	waited := make(chan time.Duration, 1)
	go func() { waited <- waitedFor(s, ctx, pid) }()
	return nothing, func(_ agenttest.LoginOf, outcome error) bool {
		stop()
		_ = tx.Rollback() // it has been ended, or has served
		return outcome != nil && <-waited > blockedTime/2
	}
}

// blockedTime is what a change gets that is to wait in vain; all others get what they need.
const (
	blockedTime = 3 * time.Second
	ampleTime   = 30 * time.Second
)

// waitedFor returns how long somebody waited for a session's locks until ctx ends.
func waitedFor(s *agenttest.Stack, ctx context.Context, pid int) time.Duration {
	var first, last time.Time
	for {
		var waits bool
		const query = "SELECT EXISTS (SELECT FROM pg_stat_activity a WHERE $1 = ANY (pg_blocking_pids(a.pid)))"
		if s.Super.QueryRowContext(ctx, query, pid).Scan(&waits) != nil {
			return last.Sub(first)
		}
		if waits {
			last = time.Now()
		}
		if waits && first.IsZero() {
			first = last
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// poisons makes the pooler try to reach PostgreSQL with the old password, and remember that it failed.
func poisons(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) (func(), func(agenttest.LoginOf, error) bool) {
	t.Helper()
	var conns []*sql.Conn
	for range 3 {
		conn := check.Must(s.Pooled(t, l.Name+".transaction", l.Username, l.Password).Conn(t.Context()))(t)
		check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
		conns = append(conns, conn)
	}
	return nothing, func(next agenttest.LoginOf, _ error) bool {
		// Where the proof of the new password has just left a connection behind, the clients would work with that. PgBouncer
		// remembers a failure for a fifth of a second, so after each the log-in is tried at once.
		works, kept := false, false
		for _, conn := range conns {
			_, err := conn.ExecContext(t.Context(), "SELECT 1")
			works = works || err == nil
			_, err = s.Pooled(t, l.Name+".transaction", l.Username, next.Password).ExecContext(t.Context(), "SELECT 1")
			kept = kept || err != nil
		}
		return works || kept
	}
}

// Each attack works where its measure is missing, and none against the flow as it is.
func TestNoUseOfAnOldPasswordSurvives(t *testing.T) {
	s := survivalStack(t)
	attacks := map[string]attack{
		"stays connected": staysConnected, "stands in the login": standsInTheLogin, "sets its own": setsItsOwn,
		"leaves a change open": leavesAChangeOpen, "poisons": poisons,
	}
	x := inProcess(t, s, s.PG.Port(), asItIs)
	for name, begin := range attacks {
		for _, m := range agenttest.Models {
			if m == database.SingleLogin && name == "stands in the login" && !sample.Whole() {
				continue // the change waits for the log-in, for five seconds
			}
			t.Run(fmt.Sprintf("%s, %s", name, m), func(t *testing.T) {
				try(t, s, openedAs(t, s, m, x), begin, byExecutor(x), false, ampleTime)
			})
		}
		t.Run(name+", naive", func(t *testing.T) { try(t, s, openedIn(t, s, x), begin, naiveOn(s), true, patience(name)) })
	}
	for name, missing := range map[string]struct {
		port int
		wrap func(*pooler.Pooler) poolerAPI
	}{
		"stays connected":     {s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return deaf{p} }},
		"poisons":             {s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return deaf{p} }},
		"stands in the login": {s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return hasty{p} }},
		"sets its own": {relayed(t, s, both(
			replacing(" NOLOGIN", "   LOGIN"), // and no session is found, neither before nor after
			replacing("a.backend_type = 'client backend'", "a.backend_type = 'nobody backend'"))), asItIs},
		"leaves a change open": {relayed(t, s, replacing("lock_timeout = '100ms'", "lock_timeout = '    0'")), asItIs},
	} {
		t.Run(name+", without its measure", func(t *testing.T) {
			x := inProcess(t, s, missing.port, missing.wrap)
			try(t, s, openedIn(t, s, x), attacks[name], byExecutor(x), true, patience(name))
		})
	}
}

// patience is for attacks that work.
func patience(attack string) time.Duration {
	if attack == "leaves a change open" {
		return blockedTime
	}
	return ampleTime
}

// try attacks a login over a change of its password, and demands that the attack works, or does not.
func try(t *testing.T, s *agenttest.Stack, l agenttest.LoginOf, begin attack, change flow, works bool, limit time.Duration) {
	t.Helper()
	next := l.Renewed()
	between, worked := begin(t, s, l)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := change(t, ctx, l, next, between)
	if err != nil && !works {
		t.Error(err)
	}
	if got := worked(next, err); got != works {
		t.Errorf("the attack works: %t, want %t (%v)", got, works, err)
	}
}
