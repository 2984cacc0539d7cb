package forward_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// Who still comes to the old server is in the database as before, and nobody else.
func TestClientsAreSentOn(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for name, test := range map[string]func(*testing.T, *moved){
		"passwords": passwords, "a rotation": rotation, "a revoked login": revoked, "a closed gate": closedGate,
		"the allowlist": allowlist, "another server in its allowlist": welcome, "the end": ending, "its time": expiry,
		"a name that is taken": taken, "a database of that name wins": wins, "another certificate": certificate,
		"the next one in its place": succeeded,
	} {
		t.Run(name, func(t *testing.T) { test(t, p.moved(t)) })
	}
}

func passwords(t *testing.T, m *moved) {
	if from := m.forwarded(t); !from.IsLoopback() {
		t.Errorf("it comes from %s", from)
	}
	for _, l := range m.Model.Logins() {
		m.getsThrough(t, "forwarded", m.Present(l))
	}
	wrong := m.Present(database.OwnerLogin)
	wrong.Password = "another"
	m.refused(t, "a wrong password", wrong)
	wrong.Password = ""
	m.refused(t, "no password", wrong)
	wrong.Username, wrong.Password = "pgherd_agent", "another"
	m.refused(t, "no login of the database", wrong)
	var text string
	query := "SELECT string_agg(w::text || s::text, '') FROM pooler.forward w JOIN pooler.forwarded s USING (database)"
	if text = m.old.One(t, query); text == "" {
		t.Error("it is not stored")
	}
}

// The old password ends with the command, also for who is idle, and other logins stay.
func rotation(t *testing.T, m *moved) {
	m.forwarded(t)
	was, stays := m.Present(database.OwnerLogin), m.Present(database.RuntimeLogin)
	old, others := m.held(t, was), m.held(t, stays)
	next := was.Renewed()
	m.now.Done(t, was.Rotate(1, next))
	m.tell.Logins[0].Verifier = next.Verifier
	if m.tell.Logins[0].Username != was.Username {
		t.Fatalf("the first login is %s", m.tell.Logins[0].Username)
	}
	m.forwarded(t)
	agenttest.Dead(t, "after a rotation", old)
	for entry, conn := range others {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("%s of another login: %v", entry, err)
		}
	}
	m.refused(t, "the old password", was)
	m.getsThrough(t, "the new password", next)
}

func revoked(t *testing.T, m *moved) {
	m.forwarded(t)
	gone := m.Present(database.ReadonlyLogin)
	held := m.held(t, gone)
	m.tell.Logins = m.tell.Logins[:2]
	m.forwarded(t)
	agenttest.Dead(t, "named no more", held)
	m.refused(t, "named no more", gone)
	m.getsThrough(t, "still named", m.Present(database.RuntimeLogin))
}

// What keeps clients out at the new server keeps them out here.
func closedGate(t *testing.T, m *moved) {
	m.forwarded(t)
	m.now.Done(t, m.Access(1, false, true))
	m.refused(t, "stopped", m.Present(database.OwnerLogin))
	m.now.Done(t, m.Access(2, true, false))
	m.getsThrough(t, "started", m.Present(database.OwnerLogin))
}

func allowlist(t *testing.T, m *moved) {
	m.tell.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	m.forwarded(t)
	held := m.held(t, m.Present(database.OwnerLogin))
	m.tell.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	m.forwarded(t)
	agenttest.Dead(t, "from elsewhere", held)
	m.refused(t, "from elsewhere", m.Present(database.OwnerLogin))
}

func welcome(t *testing.T, m *moved) {
	from, l := m.forwarded(t), m.Present(database.OwnerLogin)
	m.now.Done(t, m.Allowlist(1, "10.0.0.0/8"))
	m.refused(t, "the server is not in the allowlist", l)
	m.now.Done(t, m.welcoming(from))
	m.getsThrough(t, "the server is welcome", l)
	held := m.held(t, l)
	m.now.Done(t, m.Allowlist(2, "10.0.0.0/8", "192.0.2.0/24"))
	for entry, conn := range held {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("%s after a change of the allowlist: %v", entry, err)
		}
	}
	m.now.Done(t, m.welcoming())
	m.refused(t, "the server is not welcome any more", l)
	m.now.RefusedFor(t, command.ReasonNotFound, agenttest.Told("", 0, command.Welcome{
		DatabaseID: agenttest.Want(database.Managed).DatabaseID(), From: []netip.Addr{from}, Generation: 1,
	}))
}

func ending(t *testing.T, m *moved) {
	m.old.Done(t, m.ending()) // of none
	m.forwarded(t)
	held := m.held(t, m.Present(database.OwnerLogin))
	m.old.Done(t, m.ending())
	agenttest.Dead(t, "ended", held)
	m.refused(t, "ended", m.Present(database.OwnerLogin))
	m.old.RefusedFor(t, command.ReasonStale, agenttest.Told("", 0, command.Forward{
		DatabaseID: m.DatabaseID(), Name: m.Name, Host: "localhost", Port: 1, Until: m.tell.Until, Generation: 1,
	}))
	m.left(t)
}

// left demands that nothing of a forward is left.
func (m *moved) left(t *testing.T) {
	t.Helper()
	if n := m.old.One(t, "SELECT count(*)::text FROM pooler.forward WHERE database = $1", m.Name); n != "0" {
		t.Error("the ledger has the forward")
	}
	check.Eventually(t, "PgBouncer keeps the entries", func() bool {
		var n int
		row := m.old.Super.QueryRowContext(t.Context(), "SELECT count(*) FROM pooler.forwarded WHERE database = $1", m.Name)
		return row.Scan(&n) == nil && n == 0
	})
}

// It ends by itself, also for those who are in.
func expiry(t *testing.T, m *moved) {
	m.forwarded(t)
	held := m.held(t, m.Present(database.OwnerLogin))
	m.tell.Until = time.Now().Add(time.Second)
	m.old.Done(t, m.forwarding())
	time.Sleep(time.Until(m.tell.Until))
	m.refused(t, "its time is over", m.Present(database.OwnerLogin))
	check.Eventually(t, "it does not end", func() bool {
		return m.old.One(t, "SELECT count(*)::text FROM pooler.forward WHERE database = $1", m.Name) == "0"
	})
	agenttest.Dead(t, "its time is over", held)
}

func taken(t *testing.T, m *moved) {
	here := m.old.Made(t, database.Managed)
	m.tell.Name = here.Name
	m.old.RefusedFor(t, command.ReasonNameTaken, m.forwarding())
	m.tell.Name = m.Name
	m.tell.Logins[0].Username = here.Present(database.OwnerLogin).Username
	m.old.RefusedFor(t, command.ReasonNameTaken, m.forwarding())
	m.tell.Logins[0].Username = "pgherd_pooler_admin" // PgBouncer's
	m.old.RefusedFor(t, command.ReasonInvalid, m.forwarding())
	m.left(t)
}

// A database that is made here takes the name back at once.
func wins(t *testing.T, m *moved) {
	m.forwarded(t)
	here := agenttest.Want(database.Managed)
	here.Name = m.Name
	m.old.Done(t, here.Create())
	for _, entry := range pooler.EntryNames(m.Name) {
		login := here.Present(database.OwnerLogin)
		if port, err := m.enter(t, entry, login, login.Password); err != nil || port != m.old.PG.Port() {
			t.Errorf("%s leads to the port %d, %v", entry, port, err)
		}
	}
	m.old.RefusedFor(t, command.ReasonNameTaken, m.forwarding())
	m.left(t)
}

// A forward that ends by itself leaves its socket to the next one, for good.
func succeeded(t *testing.T, m *moved) {
	m.forwarded(t)
	here := agenttest.Want(database.Managed)
	here.Name = m.Name
	m.old.Done(t, here.Create())
	next, after := m.pair.moved(t), m.pair.moved(t)
	next.forwarded(t)
	after.forwarded(t) // what the agent does about the one that has ended, it has done by then
	for _, on := range []*moved{next, after} {
		on.getsThrough(t, "the next", on.Present(database.OwnerLogin))
	}
}

// Somebody in between is not the other server: nobody is sent on to one with another certificate.
func certificate(t *testing.T, m *moved) {
	l := m.Present(database.OwnerLogin)
	m.tell.CA = m.old.CA(t)
	m.forwarded(t)
	m.refused(t, "another authority", l)
	m.tell.CA = m.now.CA(t)
	m.forwarded(t)
	m.getsThrough(t, "the right one", l)
	m.tell.CA = m.now.Config.Pooler.PublicCA()
	m.forwarded(t)
	m.getsThrough(t, "its own", l)
	m.tell.CA = ""
	m.forwarded(t)
	m.refused(t, "nothing to know it by", l)
	m.tell.CA = "none"
	m.old.RefusedFor(t, command.ReasonInvalid, m.forwarding())
}
