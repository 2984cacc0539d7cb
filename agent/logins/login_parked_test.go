package logins_test

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Who stands still in the middle of a direct log-in over a rotation is let in by PostgreSQL, with the old password. The session
// is ended as soon as it appears, also by an agent that has started since.
func TestSessionThatBeganBeforeTheChangeIsEnded(t *testing.T) {
	t.Parallel()
	agenttest.OverModelsWhole(t, func(t *testing.T, m database.RoleModel) {
		s := agenttest.CrashStack(t)
		running := s.Child(t, "")
		l := s.Opened(t, s.MadeWithRoles(t, m).Additional(1, role.ReadOnly))
		release := make(chan struct{})
		parked := parkedDirectly(t, s.PG.URLFor(l.Username, l.Password, l.Name), release)
		s.Done(t, l.Rotate(2, l.Renewed()))
		running.Kill()
		s.Child(t, "")
		close(release)
		conn := <-parked
		if conn == nil {
			t.Fatal("PostgreSQL did not let it in: the test shows nothing")
		}
		check.Eventually(t, "the session lives", func() bool { return !alive(conn) })
		_ = conn.Close() // it is dead
	})
}

// parkedDirectly is a log-in to PostgreSQL itself that stands still before the last message of SCRAM.
func parkedDirectly(t testing.TB, dsn string, release chan struct{}) chan driver.Conn {
	t.Helper()
	connector := check.Must(pq.NewConnector(dsn))(t)
	stands, in := make(chan struct{}), make(chan driver.Conn, 1)
	connector.Dialer(agenttest.ParkingDialer{At: 3, Parked: stands, Release: release})
	go func() {
		conn, err := connector.Connect(context.Background())
		if err != nil {
			conn = nil
		}
		in <- conn
	}()
	select {
	case <-stands:
	case <-time.After(4 * time.Second):
		t.Fatal("it does not stand")
	}
	return in
}
