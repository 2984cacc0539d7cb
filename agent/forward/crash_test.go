package forward_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// crashPair is a pair whose old server has no agent yet.
func crashPair(t *testing.T) pair {
	t.Helper()
	p := pair{old: leftStack(t), now: agenttest.Own(t).Start(t)}
	first := p.old.Child(t, "")
	p.old.StartBouncer(t.Context(), t)
	first.Kill()
	return p
}

// Forwards outlast the agent, which clients that are sent on do not, and PgBouncer.
func TestForwardsOutlastTheirServer(t *testing.T) {
	t.Parallel()
	p := crashPair(t)
	m := p.moved(t)
	l := m.Present(database.OwnerLogin)
	first := p.old.Child(t, "")
	m.forwarded(t)
	held := m.held(t, l)
	delete(held, m.Name+pooler.TransactionSuffix) // it waits for the next agent
	first.Kill()
	agenttest.Dead(t, "the agent was killed", held)
	check.NoError(t, p.old.Bouncer.Kill())
	p.old.Child(t, "")
	check.NoError(t, p.old.Bouncer.Start(t.Context()))
	m.getsThrough(t, "after the restart", l)
	check.NoError(t, p.now.Bouncer.Kill())
	if _, err := m.enter(t, m.Name, l, l.Password); err == nil {
		t.Error("somebody is let in where nobody can be sent on")
	}
	status, text, err := m.old.Request(http.MethodGet, "/v1/inventory/strays", nil)
	var has command.Strays
	if err != nil || status != http.StatusOK || json.Unmarshal(text, &has) != nil || len(has.Forwards) != 1 ||
		has.Forwards[0].DatabaseID != m.DatabaseID() || !strings.Contains(has.Forwards[0].Failure, "refused") || len(has.Pooler) > 0 {
		t.Errorf("what there is: %d, %s, %v", status, text, err)
	}
	check.NoError(t, p.now.Bouncer.Start(t.Context()))
	check.Eventually(t, "nobody is sent on any more", func() bool {
		_, err := m.enter(t, m.Name, l, l.Password)
		return err == nil
	})
}

// An agent that is killed at any point leaves nobody in whom the command ends, and does it in the end.
func TestKilledOverAForward(t *testing.T) {
	t.Parallel()
	p := crashPair(t)
	m := p.moved(t)
	was := m.Present(database.OwnerLogin)
	for _, point := range agenttest.PointsOf(t, "forward") {
		t.Run(point, func(t *testing.T) {
			switch {
			case strings.Contains(point, ".welcome."):
				m.killedOverAWelcome(t, point)
				return
			case strings.Contains(point, ".end."):
				m.killedOverItsEnd(t, point, was)
				return
			}
			first := m.old.Child(t, "")
			m.forwarded(t)
			first.Kill()
			next := was.Renewed()
			m.now.Done(t, was.Rotate(generations.Add(1), next))
			for i, l := range m.tell.Logins {
				if l.Username == next.Username {
					m.tell.Logins[i].Verifier = next.Verifier
				}
			}
			again := m.forwarding()
			m.old.CrashAt(t, point, again)
			last := m.old.Child(t, "")
			m.refused(t, "the old password", was)
			m.old.Done(t, again)
			m.refused(t, "the old password in the end", was)
			m.getsThrough(t, "the new password", next)
			last.Kill()
			was = next
		})
	}
}

func (m *moved) killedOverItsEnd(t *testing.T, point string, l agenttest.LoginOf) {
	first := m.old.Child(t, "")
	m.forwarded(t)
	first.Kill()
	ending := m.ending()
	m.old.CrashAt(t, point, ending)
	last := m.old.Child(t, "")
	m.refused(t, "half ended", l)
	m.old.Done(t, ending)
	m.refused(t, "ended", l)
	m.left(t)
	last.Kill()
}

// The server that welcomes is the old one here: it has a database, too.
func (m *moved) killedOverAWelcome(t *testing.T, point string) {
	first := m.old.Child(t, "")
	here := m.old.Made(t, database.SingleLogin)
	m.old.Done(t, here.Allowlist(1, "10.0.0.0/8"))
	first.Kill()
	welcome := agenttest.Told("", 0, command.Welcome{
		DatabaseID: here.DatabaseID(), Generation: 1, From: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()},
	})
	m.old.CrashAt(t, point, welcome)
	last := m.old.Child(t, "")
	m.old.Done(t, welcome)
	login := here.Present(database.OwnerLogin)
	agenttest.Works(t, "welcome", m.old.Pooled(t, here.Name, login.Username, login.Password))
	last.Kill()
}
