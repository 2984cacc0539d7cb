package agent_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
)

// parking is a connection that waits before its n-th write, so that a log-in stands still in the middle.
type parking struct {
	net.Conn
	writes, at      int
	parked, release chan struct{}
}

func (p *parking) Write(b []byte) (int, error) {
	p.writes++
	if p.writes == p.at {
		close(p.parked)
		<-p.release
	}
	return p.Conn.Write(b)
}

// parkingDialer dials one parking connection.
type parkingDialer struct {
	at              int
	parked, release chan struct{}
}

func (d parkingDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d parkingDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d parkingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &parking{Conn: c, at: d.at, parked: d.parked, release: d.release}, err
}

// login is a log-in that stands still before its n-th write until release is closed; in then has what came of it.
type login struct {
	parked chan struct{}
	in     chan bool
}

func startLogin(t testing.TB, dsn string, at int, release chan struct{}) login {
	t.Helper()
	connector := check.Must(pq.NewConnector(dsn))(t)
	l := login{parked: make(chan struct{}), in: make(chan bool, 1)}
	connector.Dialer(parkingDialer{at, l.parked, release})
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
	s := realStack(t)
	for what, shut := range map[string]func(w wanted) protocol.Command{
		"stop":    func(w wanted) protocol.Command { return w.access(2, false, true) },
		"isolate": func(w wanted) protocol.Command { return w.isolating(newUUID()) },
	} {
		t.Run(what, func(t *testing.T) {
			w, release := s.made(t, database.SingleLogin), make(chan struct{})
			logins := s.parkedEverywhere(t, w, release)
			s.done(t, shut(w))
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
func (s *stack) parkedEverywhere(t *testing.T, w wanted, release chan struct{}) map[string]login {
	t.Helper()
	name, password := w.login(database.OwnerLogin)
	logins := map[string]login{}
	// Through the pooler: request for TLS, the handshake, startup message, first and last message of SCRAM.
	for at := 1; at <= 7; at++ {
		logins[fmt.Sprint("pooled ", at)] = startLogin(t, s.pooledURL(w.name, name, password), at, release)
	}
	// Directly: startup message, first and last message of SCRAM.
	for at := 1; at <= 3; at++ {
		logins[fmt.Sprint("direct ", at)] = startLogin(t, s.pg.URLFor(name, password, w.name), at, release)
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
