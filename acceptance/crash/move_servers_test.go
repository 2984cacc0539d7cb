package crash_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/moves"
)

// whose is a part of the service in a move: a host, or the agent or PostgreSQL of one of the servers.
type whose string

const (
	apiHost      whose = "API host"
	batchHost    whose = "batch host"
	sourceAgent  whose = "source's agent"
	targetAgent  whose = "target's agent"
	sourceServer whose = "source's PostgreSQL"
	targetServer whose = "target's PostgreSQL"
)

// moveDeath is one case: somebody dies while one of the processes is at a point. Where that needs something else before, the case
// has a prelude.
type moveDeath struct {
	dies    whose
	at      whose
	point   string
	prelude *prelude
}

func (d moveDeath) String() string {
	return fmt.Sprintf("%s dies with the %s at %s", d.dies, d.at, d.point)
}

// prelude is something that is done while a process stands at a point.
type prelude struct {
	at    whose
	point string
	do    func(t *testing.T, m *moved)
}

// fails has the target hold a row already that the source gets only now: the move cannot go on, and is undone.
var fails = &prelude{targetAgent, crash.SubscribeMade, func(t *testing.T, m *moved) {
	t.Helper()
	for n, on := range []*stack.Stack{m.target, m.source} {
		const row = "INSERT INTO entry (id, who, n) OVERRIDING SYSTEM VALUE VALUES (9000000000, 'nobody', $1)"
		db := openOne(t, on.Server.URL(m.db.Name))
		must(db.ExecContext(soon(t), row, -1-n))(t)
		noError(t, db.Close()) // an administrator in it would keep it from being dropped
	}
}}

// stays has an administrator in the database, whom nobody ends, for longer than the agent waits for that: it is not parted with
// before the next time.
var stays = &prelude{sourceAgent, crash.PartGateClosed, func(t *testing.T, m *moved) {
	t.Helper()
	db := openOne(t, m.source.Server.URL(m.db.Name))
	noError(t, db.PingContext(soon(t)))
	time.AfterFunc(10*time.Second, func() { _ = db.Close() })
}}

// points at which the agents of a move can be killed.
var (
	sourcePoints = []string{
		crash.FollowIntended, crash.FollowPublished, crash.FollowSlot, crash.FollowTaken, crash.PartAdmitted, crash.PartGateClosed,
		crash.PartAlone, crash.PartReply, crash.DepartAdmitted, crash.FollowSlotDropped, crash.DepartUnkept, crash.DepartDropped,
		crash.DepartReply,
	}
	targetPoints = []string{
		crash.SubscribeIntended, crash.SubscribeMade, crash.TakeReached, crash.TakeDropped, crash.TakeReply, crash.ServeAdmitted,
		crash.ServeReply,
	}
	sourceUndoing = []string{crash.CloseRecorded, crash.FollowSlotDropped, crash.CloseReply}
	targetUndoing = []string{crash.FollowReply, crash.CloseRecorded, crash.SubscribeDropped, crash.CloseReply}
	// At filePoints a file is written, and not at its place yet, and a copy has been begun of it: at loadPoints.
	filePoints = []string{"agent.backup.after-partial"}
	loadPoints = []string{"agent.restore.database-created", "agent.restore.loaded"}
	// commanding are the calls of a move to its agents.
	commanding = []string{"admit_peer", "dump", "load", "switch", "follow", "part", "take", "serve", "depart", "leave"}
)

// moveGroups are all cases, by what shares two servers.
var moveGroups = []struct {
	name  string
	cases func() []moveDeath
}{
	{"source", func() []moveDeath {
		return append(deaths(sourceAgent, sourcePoints, nil, sourceAgent, sourceServer, targetServer),
			deaths(sourceAgent, filePoints, nil, sourceAgent, targetAgent)...)
	}},
	{"target", func() []moveDeath {
		return append(deaths(targetAgent, targetPoints, nil, targetAgent, targetServer, sourceServer),
			deaths(targetAgent, loadPoints, nil, targetAgent, sourceAgent)...)
	}},
	{"undoing", func() []moveDeath {
		return slices.Concat(deaths(sourceAgent, sourceUndoing, fails, sourceAgent),
			deaths(targetAgent, targetUndoing, fails, targetAgent),
			deaths(sourceAgent, []string{crash.PartUndone}, stays, sourceAgent, sourceServer))
	}},
	{"commands", func() (all []moveDeath) { // around each, one of them
		turns := []whose{sourceAgent, targetServer, targetAgent, sourceServer, apiHost}
		for i, p := range around(moves.Kind, commanding...) {
			all = append(all, deaths(batchHost, []string{p}, nil, turns[i%len(turns)])...)
		}
		return all
	}},
}

// deaths are the cases in which several die, one in each, while one of the processes is at each of the points.
func deaths(at whose, points []string, before *prelude, dies ...whose) (all []moveDeath) {
	for _, p := range points {
		for _, one := range dies {
			all = append(all, moveDeath{one, at, p, before})
		}
	}
	return all
}

// moveAgentPoints are those of the agents' part of a move.
func moveAgentPoints() (points []string) {
	for _, g := range moveGroups {
		for _, d := range g.cases() {
			if d.dies == d.at {
				points = append(points, d.point)
			}
		}
	}
	return points
}

// An agent, or PostgreSQL, that is killed on either side of a move, at whichever point, leaves a database that is whole and open
// at one server only, and nothing of the move.
func TestServersKilledOverAMove(t *testing.T) {
	t.Parallel()
	for _, g := range sample.OneIn(t, len(moveGroups), moveGroups) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			m := newMoved(t)
			for _, d := range sample.OneIn(t, len(g.cases()), g.cases()) {
				if !t.Run(d.String(), func(t *testing.T) { m.dies(t, d) }) {
					t.Fatal("what this left would only confuse the next")
				}
			}
		})
	}
}
