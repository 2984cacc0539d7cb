package crash_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/scribe"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// moved is a database that moves to and fro between two servers, and is written to meanwhile.
type moved struct {
	*world
	two            *stack.Stack
	owner          *user
	db             wire.CreatedDatabase
	source, target *stack.Stack // of the next move
	agents         map[*stack.Stack]*stack.Process
}

func newMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{world: startStack(t)}
	m.owner = m.newUser(t, 1)
	m.db = m.owner.create(t, m.api, newName("moved"))
	m.two = m.beside(t, stack.Options{})
	m.agents = map[*stack.Stack]*stack.Process{m.Stack: m.agent, m.two: m.two.FirstAgent()}
	must(m.customer(t, m.db.ConnectionString).ExecContext(soon(t), scribe.Table))(t)
	return m
}

// has is the server that has the database, as the API says.
func (m *moved) has(ctx context.Context) (*stack.Stack, error) {
	d, err := m.owner.at(m.api).Databases.Get(ctx, m.db.ID)
	if net.JoinHostPort(d.Host, strconv.Itoa(d.Port)) == m.two.PoolerAddress() {
		return m.two, err
	}
	return m.Stack, err
}

func (m *moved) where(ctx context.Context) (dsn string, err error) {
	on, err := m.has(ctx)
	return m.url(on), err
}

func (m *moved) url(on *stack.Stack) string {
	return on.PoolerURL(m.db.Name, m.db.Username, m.db.Password)
}

// dies plays one case.
func (m *moved) dies(t *testing.T, d moveDeath) {
	m.source = must(m.has(soon(t)))(t)
	m.target = m.two
	if m.source == m.two {
		m.target = m.Stack
	}
	s := scribe.Start(scribe.Config{Name: t.Name(), Where: m.where, Statement: scribe.Insert, Every: 20 * time.Millisecond})
	t.Cleanup(s.Stop)
	s.GetsOn(t)
	order := func() {
		must(m.Admin(soon(t), "database", "move", "--database", string(m.db.ID), "--to", m.target.ServerID(), "--forward", "0s",
			"--reason", "room is needed"))(t)
	}
	if p := d.prelude; p != nil {
		m.arm(t, p.at, crash.Stop+p.point)
		order()
		m.stands(t, p.at, p.point)
		p.do(t, m)
		order = func() { noError(t, m.process(p.at).Thaw()) }
	}
	if d.dies == d.at {
		m.arm(t, d.at, d.point)
		order()
		dies(t, m.process(d.at), d.point)
		m.kill(t, d.dies)
	} else {
		m.arm(t, d.at, crash.Stop+d.point)
		order()
		m.stands(t, d.at, d.point)
		m.kill(t, d.dies)
		noError(t, m.process(d.at).Thaw())
	}
	m.quiet(t)
	s.GetsOn(t)
	s.Stop()
	m.stayed(t, d, s)
}

// on is where somebody is.
func (m *moved) on(who whose) *stack.Stack {
	switch who {
	case sourceAgent, sourceServer:
		return m.source
	case targetAgent, targetServer:
		return m.target
	}
	return m.Stack
}

func (m *moved) process(of whose) *stack.Process {
	if of == batchHost {
		return m.batch.Process
	}
	return m.agents[m.on(of)]
}

func (m *moved) arm(t *testing.T, at whose, point string) {
	t.Helper()
	noError(t, m.on(at).Arm(m.process(at), point))
}

func (m *moved) stands(t *testing.T, at whose, point string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the %s stands at %s", at, point), func() (bool, string) {
		return m.process(at).Frozen(), "it goes on"
	})
}

// kill ends somebody by force, unless they are dead, and starts them again.
func (m *moved) kill(t *testing.T, who whose) {
	t.Helper()
	if who == apiHost {
		noError(t, m.api.Kill())
		noError(t, m.api.Restart(soon(t), ""))
		return
	}
	on := m.on(who)
	if who == sourceServer || who == targetServer {
		noError(t, on.Server.Restart(context.WithoutCancel(t.Context()), cluster.Immediate))
		return
	}
	noError(t, m.agents[on].Kill())
	m.agents[on] = must(on.LaunchAgent(""))(t)
	noError(t, on.AwaitAgent(soon(t), m.agents[on]))
}

// left is what a move must not leave on a server, beside a database with the name that follows.
const left = `SELECT 'slot ' || slot_name FROM pg_replication_slots
	UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
	UNION ALL SELECT 'login ' || rolname FROM pg_roles WHERE rolname ~ '^move_'
	UNION ALL SELECT 'database ' || datname FROM pg_database
		WHERE NOT datistemplate AND datname NOT IN ('postgres', 'pgherd_maintenance') AND datname <> `

const leftInLedger = `SELECT 'followed ' || operation_id FROM ledger.followed
	UNION ALL SELECT 'following ' || operation_id FROM ledger.following
	UNION ALL SELECT 'parted ' || operation_id FROM ledger.parted`

// stayed checks what a case has left.
func (m *moved) stayed(t *testing.T, d moveDeath, s *scribe.Scribe) {
	t.Helper()
	now := must(m.has(soon(t)))(t)
	var status string
	const last = "SELECT status FROM operations WHERE kind = 'move' ORDER BY created_at DESC LIMIT 1"
	noError(t, m.meta.QueryRowContext(soon(t), last).Scan(&status))
	if succeeded := status == "succeeded"; succeeded != (now == m.target) || d.prelude == fails && succeeded {
		t.Errorf("the move has %s, and the target has the database: %t", status, now == m.target)
	}
	in := openOne(t, now.Server.URL(m.db.Name))
	noError(t, s.Compare(soon(t), in))
	must(in.ExecContext(soon(t), "DELETE FROM entry WHERE who = 'nobody'"))(t)
	var publications int
	noError(t, in.QueryRowContext(soon(t), "SELECT count(*) FROM pg_publication").Scan(&publications))
	if publications > 0 {
		t.Errorf("%d publications are left", publications)
	}
	for _, on := range []*stack.Stack{m.Stack, m.two} {
		name := m.db.Name
		if on != now {
			name = "none"
			if err := openOne(t, m.url(on)).PingContext(soon(t)); err == nil {
				t.Error("both servers let the owner in")
			}
		}
		eventually(t, "nothing of the move is left", func() (bool, string) {
			found := column(t, openOne(t, on.Server.URL("postgres")), left+pq.QuoteLiteral(name))
			found = append(found, column(t, openOne(t, on.Server.URL(setup.MaintenanceDatabase)), leftInLedger)...)
			return len(found) == 0, fmt.Sprint(found)
		})
		eventually(t, "the doctor finds nothing", func() (bool, string) {
			found, err := m.Doctor(soon(t), "--server", on.ServerID(), "--deep")
			return err == nil && len(found) == 0, fmt.Sprint(found, err)
		})
	}
}
