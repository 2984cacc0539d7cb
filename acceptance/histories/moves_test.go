package histories

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// Wherever a database is, and whichever address a customer comes to: who reads sees what was acknowledged before, all of it and
// nothing twice. It follows that one server at most lets customers in.

// moveFact is what somebody has seen of a database that moves.
type moveFact struct {
	is   string
	rows int
}

func (f moveFact) kind() string { return f.is }
func (moveFact) about() string  { return "the database" }

const (
	wrote      = "wrote a row"
	read       = "read all rows"
	readByOld  = "read all rows by the address that the database has left"
	turnedAway = "not let in"
	cutOff     = "cut off"
	ordered    = "ordered a move"
	busy       = "not ordered: something is under way"
	canceled   = "asked to cancel a move"
	takenBack  = "had a move failed"
	arrived    = "is at the other server"
	stayed     = "is where it was"
)

// moveState is how many rows there are.
type moveState int

func moveRules(s moveState, f moveFact) []moveState {
	switch f.is {
	case wrote:
		return only(s+1, true)
	case read, readByOld:
		return only(s, int(s) == f.rows)
	case turnedAway, cutOff, ordered, busy, canceled, takenBack, arrived, stayed:
		return only(s, true)
	}
	return nil
}

// moved is a database that is moved to and fro while customers are at work.
type moved struct {
	*world
	*history[moveFact]
	db databases.Created
}

func moveHistories(t *testing.T, seed uint64, s setting) *history[moveFact] {
	m := &moved{world: newWorld(t, seed, s), history: &history[moveFact]{}}
	m.db = must(m.planes[0].Databases.Create(m.ctx, m.caller, databases.CreateRequest{Name: "shop", DisplayName: "A shop"}))(t)
	m.at(m.standsAt()).Load("shop", "CREATE TABLE seen (n int PRIMARY KEY);\n")
	stop := m.background()
	done := make(chan struct{})
	var customers sync.WaitGroup
	for number := range 3 {
		dice := diceOf(seed, 10+number)
		customers.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(dice.IntN(500)) * time.Microsecond):
					m.visit(pick(dice, m.servers), dice)
				}
			}
		})
	}
	for range 3 {
		m.moves(m.dice)
	}
	close(done)
	customers.Wait()
	stop()
	for range 5 {
		m.clock.Advance(2 * time.Minute)
		m.turn()
	}
	m.visit(m.standsAt(), m.dice)
	return m.history
}

// moves orders a move, does something about it or not, and waits for its end.
func (m *moved) moves(dice *rand.Rand) {
	p, from := pick(dice, m.planes), m.standsAt()
	to := m.servers[slices.IndexFunc(m.servers, func(s server.Server) bool { return s.ID != from.ID })]
	q := moves.Request{DatabaseID: m.db.Record.ID, To: to.ID, Closed: dice.IntN(4) == 0, Forward: 24 * time.Hour}
	o, err := p.Operator.MoveDatabase(m.ctx, q, anOrder)
	switch {
	case fault.Has(err, fault.AgentError): // a reply was lost that was to be lost in the move before
		return
	case err != nil:
		m.saw(moveFact{is: err.Error()})
		return
	}
	m.saw(moveFact{is: ordered})
	m.at(pick(dice, m.servers)).LoseReplies(dice.IntN(3))
	if _, err := p.Operator.MoveDatabase(m.ctx, q, anOrder); fault.Has(err, fault.DatabaseStateConflict) {
		m.saw(moveFact{is: busy})
	}
	time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
	switch dice.IntN(4) {
	case 0:
		m.cancels(o)
	case 1:
		if _, err := p.Operator.FailOperation(m.ctx, o.ID, anOrder); err == nil {
			m.saw(moveFact{is: takenBack})
		}
	}
	for end := time.Now().Add(patience); !m.over(o.ID); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatal("the move does not come to its end")
		}
	}
	is := stayed
	if m.standsAt().ID == to.ID {
		is = arrived
	}
	m.saw(moveFact{is: is})
}

var anOrder = operation.Order{By: "ada", Reason: "its machine is old"}

func (m *moved) cancels(o operation.Operation) {
	p := m.planes[0]
	reached, err := p.Operations.Reach(m.ctx, m.caller, o.ID, account.Own)
	if err == nil {
		_, err = p.Operations.Cancel(m.ctx, reached)
	}
	switch {
	case err == nil:
		m.saw(moveFact{is: canceled})
	case !fault.Has(err, fault.DatabaseStateConflict):
		m.saw(moveFact{is: err.Error()})
	}
}

// visit comes to the database by a server's address, which may be the one that it has left, and writes and reads for a while.
func (m *moved) visit(by server.Server, dice *rand.Rand) {
	session, err := m.at(by).Connect(customer, "shop", m.db.Username, m.db.Password)
	if err != nil {
		m.saw(moveFact{is: turnedAway})
		return
	}
	defer session.Close()
	for range 1 + dice.IntN(4) {
		if !m.does(session, by, dice.IntN(2) == 0) {
			return
		}
		time.Sleep(time.Duration(dice.IntN(300)) * time.Microsecond)
	}
}

func (m *moved) does(session *fakeagent.Session, by server.Server, writes bool) (alive bool) {
	f := moveFact{is: read}
	switch {
	case writes:
		f.is = wrote
	case by.ID != m.standsAt().ID:
		f.is = readByOld
	}
	m.call(func() []moveFact {
		if writes {
			alive = session.Load("INSERT INTO seen VALUES (1);\n")
		} else {
			f.rows, alive = session.Rows("seen")
		}
		if !alive {
			f = moveFact{is: cutOff}
		}
		return []moveFact{f}
	})
	return alive
}

func (m *moved) saw(f moveFact) { m.call(func() []moveFact { return []moveFact{f} }) }

func (m *moved) at(s server.Server) *fakeagent.Server { return m.fleet.Server(s.ID) }

// standsAt is the server that the record names.
func (m *moved) standsAt() server.Server {
	m.t.Helper()
	on := m.reached(m.planes[0], m.db.Record.ID).Record().ServerID
	return m.servers[slices.IndexFunc(m.servers, func(s server.Server) bool { return s.ID == on })]
}

func (m *moved) over(op id.OperationID) bool {
	m.t.Helper()
	return must(m.planes[0].Operator.Operation(m.ctx, op))(m.t).Status.Final()
}

var moveTrial = trial[moveState, moveFact]{
	rules: moveRules,
	make:  moveHistories,
	kinds: []string{wrote, read, readByOld, turnedAway, cutOff, ordered, busy, canceled, takenBack, arrived, stayed},
}

func TestADatabaseThatMovesLosesNothing(t *testing.T) { moveTrial.holds(t) }

func TestADatabaseThatMovesLosesNothingOnPostgreSQL(t *testing.T) {
	moveTrial.holdsIn(t, 1, onPostgres(t))
}

func TestBugsOfMovesAreFound(t *testing.T) {
	moveTrial.finds(t, map[string]func(parts) parts{
		"customers stay where they are to be kept out": openedBy(func(c command.Command) (id.DatabaseID, bool) {
			part, is := c.(command.Part)
			return part.DatabaseID, is
		}),
		"customers are let in before all is there": openedBy(func(c command.Command) (id.DatabaseID, bool) {
			s, is := c.(command.Switch)
			return s.DatabaseID, is
		}),
	})
}

// openedBy is a bug of agents: a database is open after a command that must leave it shut.
func openedBy(after func(command.Command) (id.DatabaseID, bool)) func(parts) parts {
	return func(p parts) parts {
		if fakes, is := p.fleet.(*fakeagent.Fleet); is {
			p.fleet = openFleet{fakes, after}
		}
		return p
	}
}

type openFleet struct {
	*fakeagent.Fleet
	after func(command.Command) (id.DatabaseID, bool)
}

// Agent implements ports.Fleet.
func (f openFleet) Agent(s server.Server) (ports.Agent, error) {
	a, err := f.Fleet.Agent(s)
	return openAgent{a, f, f.Server(s.ID)}, err
}

type openAgent struct {
	ports.Agent
	fleet openFleet
	on    *fakeagent.Server
}

// Do implements ports.Agent.
func (a openAgent) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	result, err := a.Agent.Do(ctx, f, c)
	if db, is := a.fleet.after(c); is && err == nil {
		a.on.SetOpen(db, true)
	}
	return result, err
}
