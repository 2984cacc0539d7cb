package linear

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// network stands between control planes and agents. While it is bad, commands about roles are lost, refused, late or doubled, or
// their answers are lost.
type network struct {
	ports.Fleet
	late sync.WaitGroup // commands on their way

	mu   sync.Mutex
	dice *rand.Rand
	bad  bool
}

func newNetwork(f ports.Fleet, seed uint64) *network {
	return &network{Fleet: f, dice: rand.New(rand.NewPCG(seed, 2))}
}

func (n *network) worsen() { n.set(true) }

// heal ends the faults, and waits for what is on its way.
func (n *network) heal() {
	n.set(false)
	n.late.Wait()
}

func (n *network) set(bad bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bad = bad
}

// Agent implements ports.Fleet.
func (n *network) Agent(s server.Server) (ports.Agent, error) {
	a, err := n.Fleet.Agent(s)
	return line{a, n}, err
}

// accident is what happens to one command.
type accident int

const (
	none accident = iota
	unreachable
	unavailable
	replyLost
	late
	doubled
)

// accidents are what happens while the network is bad. Commands that come late do most harm: the order of arrival is no order.
var accidents = []accident{unreachable, unavailable, replyLost, late, late, doubled, doubled, doubled}

// roll draws an accident, and how long what is slow takes.
func (n *network) roll() (accident, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pause := time.Duration(n.dice.Int64N(int64(2 * time.Millisecond)))
	if !n.bad {
		return none, 0
	}
	if n.dice.IntN(4) > 0 {
		return none, pause
	}
	return accidents[n.dice.IntN(len(accidents))], pause
}

var errLost = errors.New("the connection broke off")

// carry takes one command to the agent and its answer back.
func (n *network) carry(
	ctx context.Context, send func(context.Context) (json.RawMessage, error),
) (json.RawMessage, error) {
	what, pause := n.roll()
	afterwards := func() {
		n.late.Go(func() {
			time.Sleep(10 * pause)
			_, _ = send(context.WithoutCancel(ctx)) // nobody hears the answer
		})
	}
	time.Sleep(pause)
	switch what {
	case unreachable:
		return nil, ports.ErrAgentUnreachable
	case unavailable:
		return nil, &command.Refusal{Reason: command.ReasonUnavailable, Message: "PostgreSQL is down"}
	case late:
		afterwards()
		return nil, errLost
	case doubled:
		defer afterwards()
	case none, replyLost:
	}
	result, err := send(ctx)
	if what == replyLost {
		return nil, errLost
	}
	time.Sleep(pause / 2)
	return result, err
}

// line is an agent at the other end of the network.
type line struct {
	ports.Agent
	n *network
}

// Do implements ports.Agent.
func (l line) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	send := func(ctx context.Context) (json.RawMessage, error) { return l.Agent.Do(ctx, f, c) }
	if c.About().Kind != (command.ChangeLogin{}).About().Kind {
		return send(ctx)
	}
	return l.n.carry(ctx, send)
}
