package logins_test

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// openedIn makes a managed database with an additional role that may log in, without an agent.
func openedIn(t testing.TB, s *agenttest.Stack, x executing) agenttest.LoginOf {
	t.Helper()
	return openedAs(t, s, database.Managed, x)
}

// alive reports whether a session still answers.
func alive(conn driver.Conn) bool {
	_, err := conn.(driver.ExecerContext).ExecContext(context.Background(), "SELECT 1", nil)
	return err == nil
}

// watched is how many logins the ledger has a watch over.
func watched(t testing.TB, s *agenttest.Stack) string {
	t.Helper()
	return s.One(t, "SELECT count(*) FROM ledger.role WHERE parked IS NOT NULL")
}

// Who stood in the middle of a direct log-in over a rotation gets in after all is done, sets a password of its own, gets in with
// that, and may be gone before anybody looks. Neither session nor password is left, and a rotation repairs the login.
func TestPasswordSetAfterTheCommandIsTakenAway(t *testing.T) {
	agenttest.OverModelsWhole(t, testPasswordSetAfterTheCommandIsTakenAway)
}

func testPasswordSetAfterTheCommandIsTakenAway(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	x := inProcess(t, s, s.PG.Port(), asItIs)
	for what, stays := range map[string]bool{"leaves": false, "stays": true} {
		t.Run(what, func(t *testing.T) {
			l := openedAs(t, s, m, x)
			release := make(chan struct{})
			parked := parkedDirectly(t, s.PG.URLFor(l.Username, l.Password, l.Name), release)
			mine, next := l.Renewed(), l.Renewed()
			check.Must(x.Execute(t.Context(), l.Rotate(2, next)))(t)
			if n := watched(t, s); n != "1" {
				t.Errorf("%s logins are watched", n)
			}
			close(release)
			conn := <-parked
			if conn == nil {
				t.Fatal("PostgreSQL did not let it in: the test shows nothing")
			}
			set := "ALTER ROLE CURRENT_USER PASSWORD '" + mine.Verifier + "'"
			check.Must(conn.(driver.ExecerContext).ExecContext(t.Context(), set, nil))(t)
			second := session(t, s, mine)
			defer second.Close()
			if !stays {
				_ = conn.Close()
			}
			go x.SweepChanged(t.Context())
			check.Eventually(t, "somebody is still watched", func() bool { return watched(t, s) == "0" })
			check.Eventually(t, "a session lives", func() bool { return !alive(second) && (!stays || !alive(conn)) }) // after the watch
			s.GetsInNowhere(t, "a password of its own", mine)
			s.GetsInNowhere(t, "the old password", l)
			s.GetsInNowhere(t, "the new password", next)
			last := l.Renewed()
			check.Must(x.Execute(t.Context(), next.Rotate(3, last)))(t)
			s.GetsIn(t, "rotated again", last)
		})
	}
}

// A password that the login sets by hand, after a change that nobody stood in the middle of a log-in over, stays.
func TestPasswordSetByHandStays(t *testing.T) {
	agenttest.OverModelsWhole(t, testPasswordSetByHandStays)
}

func testPasswordSetByHandStays(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	x := inProcess(t, s, s.PG.Port(), asItIs)
	go x.SweepChanged(t.Context())
	l := openedAs(t, s, m, x)
	mine, next := l.Renewed(), l.Renewed()
	check.Must(x.Execute(t.Context(), l.Rotate(2, next)))(t)
	if n := watched(t, s); n != "0" {
		t.Errorf("%s logins are watched", n)
	}
	check.Must(s.Direct(t, l.Name, l.Username, next.Password).Exec("ALTER ROLE CURRENT_USER PASSWORD '" + mine.Verifier + "'"))(t)
	time.Sleep(500 * time.Millisecond)
	s.GetsIn(t, "set by hand", mine)
}

// slow is a direct log-in that PostgreSQL lets in and then keeps for two seconds before it shows the session, as the client has
// asked for.
func slow(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) chan driver.Conn {
	t.Helper()
	connector := check.Must(pq.NewConnector(s.PG.URLFor(l.Username, l.Password, l.Name) + "&options=-c%20post_auth_delay=2"))(t)
	in := make(chan driver.Conn, 1)
	go func() {
		conn, err := connector.Connect(context.Background())
		if err != nil {
			conn = nil
		}
		in <- conn
	}()
	stands := func() bool {
		return s.One(t, `SELECT count(*) FROM pg_locks l WHERE l.locktype = 'virtualxid' AND NOT EXISTS (
			SELECT FROM pg_stat_activity a WHERE a.pid = l.pid)`) == "1"
	}
	check.Eventually(t, "it does not stand", func() bool {
		if !stands() {
			return false
		}
		time.Sleep(200 * time.Millisecond) // SCRAM takes some milliseconds
		return stands()
	})
	return in
}

// A log-in that is past all checks and not yet shown, for longer than anybody is waited for, ends when it is shown; also where
// that is after the time that a log-in may take, and where its role is gone by then.
func TestSessionThatIsShownLateIsEnded(t *testing.T) {
	agenttest.OverModelsWhole(t, testSessionThatIsShownLateIsEnded)
}

func testSessionThatIsShownLateIsEnded(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	early := replacing("interval '10 s'", "interval '-1 h'") // the time that a log-in may take is over at once
	for what, c := range map[string]struct {
		edit func([]byte) []byte
		end  func(l agenttest.LoginOf) protocol.Command
		ends bool
	}{
		"rotate": {early, func(l agenttest.LoginOf) protocol.Command { return l.Rotate(2, l.Renewed()) }, true},
		"revoke": {early, func(l agenttest.LoginOf) protocol.Command { return l.Shut(role.Revocation, 2) }, true},
		"remove": {early, func(l agenttest.LoginOf) protocol.Command { return l.Remove(2) }, true},
		"rotate, late session not looked for": {
			both(early, replacing("'virtualxid'", "'nobodyvxid'")),
			func(l agenttest.LoginOf) protocol.Command { return l.Rotate(2, l.Renewed()) }, false,
		},
	} {
		t.Run(what, func(t *testing.T) {
			x := inProcess(t, s, relayed(t, s, c.edit), asItIs)
			l := openedAs(t, s, m, x)
			in := slow(t, s, l)
			check.Must(x.Execute(t.Context(), c.end(l)))(t)
			go x.SweepChanged(t.Context())
			conn := <-in
			if conn == nil {
				t.Fatal("PostgreSQL did not let it in: the test shows nothing")
			}
			defer conn.Close()
			if c.ends {
				check.Eventually(t, "its session lives", func() bool { return !alive(conn) })
				check.Eventually(t, "somebody is still watched", func() bool { return watched(t, s) == "0" })
				return
			}
			time.Sleep(time.Second)
			if !alive(conn) {
				t.Error("the session is ended: another measure ends it too")
			}
		})
	}
}

// An administrator's session is not swept, keeps no other login's from being swept, and a sweep that fails says so, once.
func TestSweepSparesAdministratorsAndComplains(t *testing.T) {
	agenttest.OverModelsWhole(t, testSweepSparesAdministratorsAndComplains)
}

func testSweepSparesAdministratorsAndComplains(t *testing.T, m database.RoleModel) {
	s := survivalStack(t)
	x := inProcess(t, s, s.PG.Port(), asItIs)
	lifted, other := openedAs(t, s, m, x), openedAs(t, s, m, x)
	t.Cleanup(func() { check.Must(s.Super.Exec("ALTER ROLE " + lifted.Username + " NOSUPERUSER"))(t) })
	conns := map[string]driver.Conn{}
	for _, l := range []agenttest.LoginOf{lifted, other} {
		conns[l.Username] = session(t, s, l)
		defer conns[l.Username].Close()
	}
	check.Must(s.Super.Exec("ALTER ROLE " + lifted.Username + " SUPERUSER"))(t)
	check.Must(s.Super.Exec("UPDATE ledger.role SET changed_at = clock_timestamp() WHERE part = 'additional'"))(t)
	go x.SweepChanged(t.Context())
	check.Eventually(t, "the other's session lives", func() bool { return !alive(conns[other.Username]) })
	if !alive(conns[lifted.Username]) {
		t.Error("the administrator's session is ended")
	}

	core, log := observer.New(zap.WarnLevel)
	port := relayed(t, s, replacing("authentication_timeout", "authentication_timeour"))
	broken := inProcessLogging(t, s, port, asItIs, zap.New(core))
	go broken.SweepChanged(t.Context())
	check.Eventually(t, "it does not complain", func() bool { return log.Len() > 0 })
	time.Sleep(500 * time.Millisecond)
	if n := log.Len(); n != 1 {
		t.Errorf("it complains %d times", n)
	}
}
