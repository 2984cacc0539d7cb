package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// mostClients is what PgBouncer admits here. Of four databases with equal caps each has a share of 70.
const mostClients = 350

// idler stays logged in at an entry, does nothing, and comes back whenever it is ended.
type idler struct {
	*pq.Connector
	raw net.Conn
}

// Dial keeps the bare connection, to notice its end.
func (i *idler) Dial(network, address string) (_ net.Conn, err error) {
	i.raw, err = net.Dial(network, address)
	return i.raw, err
}

// DialTimeout implements pq.Dialer.
func (i *idler) DialTimeout(network, address string, timeout time.Duration) (_ net.Conn, err error) {
	i.raw, err = net.DialTimeout(network, address, timeout)
	return i.raw, err
}

// stay calls in at each log-in and out at the end of each.
func (i *idler) stay(ctx context.Context, in, out func()) {
	for ctx.Err() == nil {
		conn, err := i.Connect(ctx)
		if err != nil {
			time.Sleep(250 * time.Millisecond)
			continue
		}
		in()
		stop := context.AfterFunc(ctx, func() { _ = i.raw.Close() })
		_, _ = i.raw.Read(make([]byte, 1)) // PgBouncer says nothing to an idle client until it ends it
		stop()
		out()
		_ = conn.Close() // it has ended
	}
}

// crowdOf lets n idlers in and returns how many there are, and how often one was ended.
func (s *stack) crowdOf(t *testing.T, ctx context.Context, w wanted, n int) (count func() (now, ended int)) {
	t.Helper()
	name, password := w.login(database.OwnerLogin)
	var mu sync.Mutex
	var now, ended int
	var all sync.WaitGroup
	for range n {
		i := &idler{Connector: check.Must(pq.NewConnector(s.pooledURL(w.name, name, password)))(t)}
		i.Dialer(i)
		all.Go(func() {
			i.stay(ctx, func() { mu.Lock(); now++; mu.Unlock() }, func() { mu.Lock(); now--; ended++; mu.Unlock() })
		})
	}
	t.Cleanup(all.Wait)
	return func() (int, int) { mu.Lock(); defer mu.Unlock(); return now, ended }
}

func (s *stack) tellAccounts(t *testing.T, all map[string][]wanted) {
	t.Helper()
	var list command.SetAccounts
	for account, databases := range all {
		for _, w := range databases {
			list.Databases = append(list.Databases, database.Ownership{DatabaseID: w.databaseID(), AccountID: id.AccountID(account)})
		}
	}
	body := check.Must(json.Marshal(list))(t)
	if status, text, err := s.request(http.MethodPut, "/v1/accounts", body); err != nil || status != http.StatusNoContent {
		t.Fatal(status, string(text), err)
	}
}

// One account comes with more clients than PgBouncer admits, which come back whenever they are ended. Another account keeps what
// it holds, which is more than the share of one of its databases, and gets in, as do the agent's proofs.
func TestACrowdOfOneAccountKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.config.Pooler.MaxClients, s.config.Pooler.MaxDatabaseClients = mostClients, 2*mostClients
	a, logs, _ := s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	var all []wanted
	for range 4 {
		all = append(all, s.made(t, database.Managed))
	}
	crowding, bystanding, crowd, quiet := newUUID(), newUUID(), all[0], all[2]
	s.tellAccounts(t, map[string][]wanted{crowding: all[:2], bystanding: all[2:]})
	role := s.opened(t, all[3].additional(1, role.ReadOnly))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	others := s.crowdOf(t, ctx, quiet, 100)
	check.Eventually(t, "the bystander's clients are not in", func() bool { n, _ := others(); return n == 100 })
	_, before := others()
	s.crowdOf(t, ctx, crowd, mostClients)
	check.Eventually(t, "no clients are ended", func() bool { return a.Clients().Idle > 0 })

	name, password := quiet.login(database.OwnerLogin)
	var longest time.Duration
	for range 10 {
		began := time.Now()
		check.Eventually(t, "no bystander logs in", func() bool {
			db := s.pooled(t, quiet.name, name, password)
			defer db.Close()
			_, err := db.ExecContext(ctx, "SELECT 1")
			return err == nil
		})
		longest = max(longest, time.Since(began))
	}
	began := time.Now()
	s.done(t, role.rotate(2, role.renewed()))
	t.Logf("a log-in took at most %s, a rotation %s; %+v", longest, time.Since(began), a.Clients())
	if _, ended := others(); ended > before {
		t.Errorf("%d of the bystander's clients were ended", ended-before)
	}
	for _, line := range logs.FilterMessageSnippet("were ended").All() {
		said := line.ContextMap()
		if said["account"] != crowding || said["database"] != crowd.name {
			t.Errorf("the log says %v", said)
		}
	}
	if logs.FilterMessageSnippet("were ended").Len() == 0 {
		t.Error("the log says nothing")
	}
}

// A create waits where the pooler is full of clients, here of strangers who do not log in: PgBouncer ends them after 5 s.
func TestACreateWaitsWhileThePoolerIsCrowded(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.config.Pooler.MaxClients, s.config.Pooler.MaxDatabaseClients = mostClients, 2*mostClients
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	first := s.made(t, database.SingleLogin)
	name, password := first.login(database.OwnerLogin)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.strangers(t, ctx, mostClients)
	check.Eventually(t, "the pooler is not full", func() bool {
		_, err := s.pooled(t, first.name, name, password).Exec("SELECT 1")
		return err != nil && strings.Contains(err.Error(), "no more connections")
	})
	stop()
	s.done(t, want(database.SingleLogin).create())
}

// strangers keeps n connections open that do not log in. Whoever is ended comes back until the context ends.
func (s *stack) strangers(t *testing.T, ctx context.Context, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.config.Pooler.ListenPort)))
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
