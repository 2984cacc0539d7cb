package forward_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

func TestMain(m *testing.M) {
	os.Exit(agenttest.Main(m, "TestRefusal", "TestReach"))
}

// pair is a server that databases have left, and the one that has them.
type pair struct{ old, now *agenttest.Stack }

// leftStack is a stack whose agent may give PgBouncer sockets to connect to.
func leftStack(t *testing.T) *agenttest.Stack {
	t.Helper()
	s := agenttest.Own(t)
	s.GiveSockets(t)
	return s
}

func newPair(t *testing.T) pair {
	t.Helper()
	return pair{old: leftStack(t).Start(t), now: agenttest.Own(t).Start(t)}
}

var generations atomic.Int64

// moved is a database that the server has to which clients are sent on.
type moved struct {
	pair
	agenttest.Wanted
	tell command.Forward
}

func (p pair) moved(t *testing.T) *moved {
	t.Helper()
	m := &moved{pair: p, Wanted: p.now.Made(t, database.Managed)}
	m.tell = command.Forward{
		DatabaseID: m.DatabaseID(), Name: m.Name, Host: "localhost", Port: p.now.Config.Pooler.ListenPort, CA: p.now.CA(t),
		ConnectionCap: m.Cap, Until: time.Now().Add(time.Hour),
	}
	for _, l := range m.Model.Logins() {
		login := m.Present(l)
		m.tell.Logins = append(m.tell.Logins, command.Forwarding{Username: login.Username, Verifier: login.Verifier})
	}
	return m
}

// forwarding is the command as it stands, of a new generation.
func (m *moved) forwarding() protocol.Command {
	m.tell.Generation = generations.Add(1)
	return agenttest.Told("", 0, m.tell)
}

func (m *moved) ending() protocol.Command {
	return agenttest.Told("", 0, command.EndForward{DatabaseID: m.DatabaseID(), Generation: generations.Add(1)})
}

func (m *moved) welcoming(from ...netip.Addr) protocol.Command {
	return agenttest.Told("", 0, command.Welcome{DatabaseID: m.DatabaseID(), From: from, Generation: generations.Add(1)})
}

// forwarded has the old server send on, which tells where from.
func (m *moved) forwarded(t *testing.T) netip.Addr {
	t.Helper()
	var done command.Forwarded
	check.NoError(t, json.Unmarshal(m.old.Done(t, m.forwarding()), &done))
	return done.From
}

// enter logs in at an entry of the old server, and tells on which PostgreSQL that ends.
func (m *moved) enter(t *testing.T, entry string, l agenttest.LoginOf, password string) (port int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	db := m.old.Pooled(t, entry, l.Username, password)
	defer db.Close()
	var database string // in a simple query: the second entry has no statement that was prepared before
	err = db.QueryRowContext(ctx, "SELECT inet_server_port(), current_database()").Scan(&port, &database)
	if err == nil && database != m.Name {
		t.Errorf("%s leads to the database %s", entry, database)
	}
	return port, err
}

// getsThrough demands that a login comes by both entries to the server that has the database.
func (m *moved) getsThrough(t *testing.T, what string, l agenttest.LoginOf) {
	t.Helper()
	for _, entry := range pooler.EntryNames(m.Name) {
		if port, err := m.enter(t, entry, l, l.Password); err != nil || port != m.now.PG.Port() {
			t.Errorf("%s: %s at %s: port %d, %v", what, l.Username, entry, port, err)
		}
	}
}

func (m *moved) refused(t *testing.T, what string, l agenttest.LoginOf) {
	t.Helper()
	for _, entry := range pooler.EntryNames(m.Name) {
		if _, err := m.enter(t, entry, l, l.Password); err == nil {
			t.Errorf("%s: %s gets in at %s", what, l.Username, entry)
		}
	}
}

// held are connections of a login at both entries of the old server, idle.
func (m *moved) held(t *testing.T, l agenttest.LoginOf) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for _, entry := range pooler.EntryNames(m.Name) {
		conns[entry] = check.Must(m.old.Pooled(t, entry, l.Username, l.Password).Conn(t.Context()))(t)
		check.Must(conns[entry].ExecContext(t.Context(), "SELECT 1"))(t)
	}
	return conns
}
