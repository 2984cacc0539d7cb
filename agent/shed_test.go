package agent_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// mostClients is what PgBouncer admits here. Of four databases with equal caps each has a share of 70.
const mostClients = 350

// One account comes with more clients than PgBouncer admits. Some of them are ended, and the log says whose; another account gets
// in, as do the agent's proofs. That its clients stay is in pooler; when they come back, see acceptance/abuse.
func TestACrowdOfOneAccountKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.Pooler.MaxClients, s.Config.Pooler.MaxDatabaseClients = mostClients, 2*mostClients
	a, logs, _ := s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	crowd, quiet := s.Made(t, database.Managed), s.Made(t, database.Managed)
	crowding := agenttest.NewUUID()
	s.TellAccounts(t, map[string][]agenttest.Wanted{crowding: {crowd}, agenttest.NewUUID(): {quiet}})
	l := s.Opened(t, quiet.Additional(1, role.ReadOnly))

	name, password := crowd.Login(database.OwnerLogin)
	for err := error(nil); err == nil && a.Clients().Idle == 0; {
		_, err = s.Pooled(t, crowd.Name, name, password).Conn(t.Context()) // it stays to the end of the test
	}
	check.Eventually(t, "no clients are ended", func() bool { return a.Clients().Idle > 0 })
	s.GetsIn(t, "another account", quiet.Present(database.OwnerLogin))
	s.Done(t, l.Rotate(2, l.Renewed()))
	said := logs.FilterMessageSnippet("were ended").All()
	for _, line := range said {
		if of := line.ContextMap(); of["account"] != crowding || of["database"] != crowd.Name {
			t.Errorf("the log says %v", of)
		}
	}
	if len(said) == 0 {
		t.Error("the log says nothing")
	}
}

// A create waits where the pooler is full of clients, here of strangers who do not log in: PgBouncer ends them after 5 s.
func TestACreateWaitsWhileThePoolerIsCrowded(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.Pooler.MaxClients, s.Config.Pooler.MaxDatabaseClients = mostClients, 2*mostClients
	s.Start(t)
	first := s.Made(t, database.SingleLogin)
	name, password := first.Login(database.OwnerLogin)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	strangers(t, s, ctx, mostClients)
	check.Eventually(t, "the pooler is not full", func() bool {
		_, err := s.Pooled(t, first.Name, name, password).Exec("SELECT 1")
		return err != nil && strings.Contains(err.Error(), "no more connections")
	})
	stop()
	s.Done(t, agenttest.Want(database.SingleLogin).Create())
}

// strangers keeps n connections open that do not log in. Whoever is ended comes back until the context ends.
func strangers(t *testing.T, s *agenttest.Stack, ctx context.Context, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Config.Pooler.ListenPort)))
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				_, _ = conn.Write([]byte{0})     // PgBouncer does not hear of a connection before it has sent something
				_, _ = io.Copy(io.Discard, conn) // until PgBouncer ends it
				_ = conn.Close()
			}
		})
	}
	t.Cleanup(all.Wait)
}
