package logins_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
)

// login is a log-in that stands still before its n-th write until release is closed; in then has what came of it.
type login struct {
	parked chan struct{}
	in     chan bool
}

func startLogin(t testing.TB, dsn string, at int, release chan struct{}) login {
	t.Helper()
	connector := check.Must(pq.NewConnector(dsn))(t)
	l := login{parked: make(chan struct{}), in: make(chan bool, 1)}
	connector.Dialer(agenttest.ParkingDialer{At: at, Parked: l.parked, Release: release})
	go func() {
		conn, err := connector.Connect(context.Background())
		if err == nil {
			_, err = conn.(driver.QueryerContext).QueryContext(context.Background(), "SELECT 1", nil)
			_ = conn.Close() // it has served
		}
		l.in <- err == nil
	}()
	return l
}

// Whoever stands in the middle of a log-in over the whole of a stop or an isolation, at whatever step of it, does not get in
// afterwards, with the right password and all.
func TestNobodyParkedInALoginGetsIn(t *testing.T) {
	s := agenttest.Shared(t)
	for what, shut := range map[string]func(w agenttest.Wanted) protocol.Command{
		"stop":    func(w agenttest.Wanted) protocol.Command { return w.Access(2, false, true) },
		"isolate": func(w agenttest.Wanted) protocol.Command { return w.Isolating(agenttest.NewUUID()) },
	} {
		t.Run(what, func(t *testing.T) {
			w, release := s.Made(t, database.SingleLogin), make(chan struct{})
			logins := parkedEverywhere(t, s, w, release)
			s.Done(t, shut(w))
			close(release)
			for where, l := range logins {
				if <-l.in {
					t.Errorf("%s: got in", where)
				}
			}
		})
	}
}

// parkedEverywhere has log-ins as the owner stand still at every step.
func parkedEverywhere(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, release chan struct{}) map[string]login {
	t.Helper()
	name, password := w.Login(database.OwnerLogin)
	logins := map[string]login{}
	// Through the pooler: request for TLS, the handshake, startup message, first and last message of SCRAM.
	for at := 1; at <= 7; at++ {
		logins[fmt.Sprint("pooled ", at)] = startLogin(t, s.PooledURL(w.Name, name, password), at, release)
	}
	// Directly: startup message, first and last message of SCRAM.
	for at := 1; at <= 3; at++ {
		logins[fmt.Sprint("direct ", at)] = startLogin(t, s.PG.URLFor(name, password, w.Name), at, release)
	}
	for what, l := range logins {
		select {
		case <-l.parked:
		case in := <-l.in:
			if !in {
				t.Errorf("%s: refused before", what)
			}
			delete(logins, what) // it has fewer steps
		case <-time.After(4 * time.Second):
			t.Fatalf("%s neither stands nor is in", what)
		}
	}
	if len(logins) < 8 {
		t.Fatalf("only %d log-ins stand", len(logins))
	}
	return logins
}
