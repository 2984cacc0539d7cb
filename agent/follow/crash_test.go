package follow_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// mortals are two servers whose agents are processes of their own.
type mortals struct {
	t              *testing.T // whose agents they are, which outlive its parts
	source, target *agenttest.Stack
	agents         map[*agenttest.Stack]*agenttest.Child
}

func newMortals(t *testing.T) mortals {
	t.Helper()
	p := mortals{t, agenttest.Logical(t), agenttest.Logical(t), map[*agenttest.Stack]*agenttest.Child{}}
	for _, s := range []*agenttest.Stack{p.source, p.target} {
		p.agents[s] = s.Child(t, "")
		s.StartBouncer(t.Context(), t)
	}
	return p
}

// step is one command of a move, and how it is brought to its end.
type step struct {
	at      *agenttest.Stack
	command func() command.Command
	do      func(t *testing.T)
}

func (m *move) steps(t *testing.T) []step {
	t.Helper()
	done := func(at *agenttest.Stack, c func() command.Command) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			at.DoneInTheEnd(t, agenttest.Told(m.operation, m.epoch, c()))
		}
	}
	switching := func() command.Command { return m.switching() }
	depart := func() command.Command { return m.departing() }
	take := func() command.Command { return m.taking() }
	serve := func() command.Command { return m.serving() }
	return []step{
		{m.source, func() command.Command { return m.dumping() }, func(t *testing.T) { t.Helper(); m.dumps(t); m.fills(t) }},
		{m.target, switching, done(m.target, switching)},
		{m.target, func() command.Command { return m.following(t) }, m.follows},
		{m.source, func() command.Command { return m.parting() }, func(t *testing.T) {
			t.Helper()
			m.parted = tell(t, m, m.source, m.parting())
		}},
		{m.target, take, done(m.target, take)}, {m.target, serve, done(m.target, serve)},
		{m.source, depart, done(m.source, depart)},
	}
}

const (
	dumpStep = iota
	switchStep
	followStep
	partStep
	takeStep
	serveStep
	departStep
)

// dies has an agent die at a point of a command, and another one take over.
func (p mortals) dies(t *testing.T, at *agenttest.Stack, point string, c protocol.Command) {
	t.Helper()
	p.agents[at].Kill()
	at.Child(t, point).DiesOver(t, at, c)
	p.agents[at] = at.Child(p.t, "")
}

// An agent that dies at whatever point of a move leaves what another one goes on from.
func TestAgentsDieOverAMove(t *testing.T) {
	t.Parallel()
	p := newMortals(t)
	for i, death := range []struct {
		step  int
		point string
	}{
		{dumpStep, crash.FollowIntended}, {dumpStep, crash.FollowPublished}, {dumpStep, crash.FollowSlot},
		{dumpStep, crash.FollowTaken}, {switchStep, crash.SwitchRenamed}, {switchStep, crash.DiscardPassing},
		{followStep, crash.SubscribeIntended}, {followStep, crash.SubscribeMade},
		{partStep, crash.PartAdmitted}, {partStep, crash.PartGateClosed}, {partStep, crash.PartAlone}, {partStep, crash.PartReply},
		{takeStep, crash.TakeReached}, {takeStep, crash.TakeDropped}, {takeStep, crash.TakeReply},
		{serveStep, crash.ServeAdmitted}, {serveStep, crash.ServeReply},
		{departStep, crash.DepartAdmitted}, {departStep, crash.DepartUnkept}, {departStep, crash.DepartDropped},
		{departStep, crash.DepartReply},
	} {
		if !agenttest.Turn(i, 1, 6) {
			continue
		}
		t.Run(death.point, func(t *testing.T) {
			m := begun(t, p.source, p.target, `CREATE TABLE entry (n serial PRIMARY KEY)`, `INSERT INTO entry DEFAULT VALUES`)
			m.prepares(t)
			for n, s := range m.steps(t) {
				if n == death.step {
					p.dies(t, s.at, death.point, agenttest.Told(m.operation, m.epoch, s.command()))
				}
				s.do(t)
				if n < partStep {
					m.source.InDatabase(t, m.w, `INSERT INTO entry DEFAULT VALUES RETURNING n`)
				}
			}
			m.hasArrived(t, "4")
		})
	}
}

// hasArrived checks that the target serves with so many rows, and the source has nothing left.
func (m *move) hasArrived(t *testing.T, rows string) {
	t.Helper()
	if n := m.target.InDatabase(t, m.w, `SELECT count(*)::text FROM entry`); n != rows {
		t.Errorf("the target has %s rows of %s", n, rows)
	}
	m.target.GetsIn(t, "the owner", m.w.Present("owner"))
	m.source.NoTrace(t, m.w)
	for _, s := range []*agenttest.Stack{m.source, m.target} {
		nothingKept(t, s)
		s.NoOrphans(t)
	}
}

// An agent that dies while it undoes a move leaves what another one undoes.
func TestAgentsDieOverAnUndoing(t *testing.T) {
	t.Parallel()
	p := newMortals(t)
	for _, point := range []string{crash.SubscribeDropped, crash.PartUndone, crash.FollowSlotDropped} {
		t.Run(point, func(t *testing.T) {
			m := begun(t, p.source, p.target, `CREATE TABLE entry (n serial PRIMARY KEY)`)
			m.prepares(t)
			for _, s := range m.steps(t)[:takeStep] {
				s.do(t)
			}
			at := p.source
			if point == crash.SubscribeDropped {
				at = p.target
			}
			p.dies(t, at, point, agenttest.Closing(m.operation))
			for _, s := range []*agenttest.Stack{p.target, p.source} {
				s.DoneInTheEnd(t, agenttest.Closing(m.operation))
				nothingKept(t, s)
				s.NoOrphans(t)
			}
			p.source.GetsIn(t, "the owner", m.w.Present("owner"))
			p.target.NoTrace(t, m.w)
		})
	}
}

// PostgreSQL of either side crashes while it is followed, or follows, and at the moments at which the most could be lost.
func TestServersCrashOverAMove(t *testing.T) {
	t.Parallel()
	p := newMortals(t)
	m := begun(t, p.source, p.target, `CREATE TABLE entry (n serial PRIMARY KEY)`)
	m.prepares(t)
	for n, s := range m.steps(t) {
		points := map[int]string{partStep: crash.PartAlone, takeStep: crash.TakeDropped, serveStep: crash.ServeAdmitted}
		if point := points[n]; point != "" {
			p.agents[s.at].Kill()
			p.agents[s.at] = s.at.ServerCrash(t, point, agenttest.Told(m.operation, m.epoch, s.command()))
		}
		s.do(t)
		if n == followStep {
			for _, one := range []*agenttest.Stack{p.source, p.target} {
				check.NoError(t, one.PG.Restart(context.Background(), cluster.Immediate))
				check.Eventually(t, "nobody can write", func() bool {
					db := p.source.SuperIn(t, m.w)
					defer db.Close()
					_, err := db.Exec(`INSERT INTO entry DEFAULT VALUES`)
					return err == nil
				})
				check.Eventually(t, "the agent is not in charge again", func() bool {
					_, reason, err := p.target.Send(agenttest.Told(m.operation, m.epoch, m.following(t)))
					return err == nil && reason == ""
				})
			}
			m.follows(t)
		}
	}
	m.hasArrived(t, "2")
}
