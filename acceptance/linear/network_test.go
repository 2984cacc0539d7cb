package linear

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/role"
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
func carry[T any](ctx context.Context, n *network, command func(context.Context) (T, error)) (T, error) {
	var nothing T
	what, pause := n.roll()
	afterwards := func() {
		n.late.Go(func() {
			time.Sleep(10 * pause)
			_, _ = command(context.WithoutCancel(ctx)) // nobody hears the answer
		})
	}
	time.Sleep(pause)
	switch what {
	case unreachable:
		return nothing, ports.ErrAgentUnreachable
	case unavailable:
		return nothing, &ports.AgentRefusal{Reason: ports.ReasonUnavailable, Message: "PostgreSQL is down"}
	case late:
		afterwards()
		return nothing, errLost
	case doubled:
		defer afterwards()
	case none, replyLost:
	}
	result, err := command(ctx)
	if what == replyLost {
		return nothing, errLost
	}
	time.Sleep(pause / 2)
	return result, err
}

// line is an agent at the other end of the network.
type line struct {
	ports.Agent
	n *network
}

func (l line) PrepareRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	_, err := carry(ctx, l.n, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Agent.PrepareRole(ctx, f, spec) })
	return err
}

func (l line) AdmitRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	_, err := carry(ctx, l.n, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Agent.AdmitRole(ctx, f, spec) })
	return err
}

func (l line) ChangeLogin(ctx context.Context, f ports.Fence, spec ports.LoginChange) (role.Proof, error) {
	return carry(ctx, l.n, func(ctx context.Context) (role.Proof, error) { return l.Agent.ChangeLogin(ctx, f, spec) })
}

func (l line) RemoveRole(ctx context.Context, f ports.Fence, spec ports.RoleRemoval) (role.Dependencies, error) {
	return carry(ctx, l.n, func(ctx context.Context) (role.Dependencies, error) { return l.Agent.RemoveRole(ctx, f, spec) })
}
