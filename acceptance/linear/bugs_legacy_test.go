package linear

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// hastyFleet hands out agents of databases with a single login that make short work of something.
type hastyFleet struct {
	*fakeagent.Fleet
	grants bool // who is admitted gets CONNECT, too
	boasts bool // every step is said to be done, and every role as it should be
	skips  bool // what an opt-in leaves is forgotten
}

func (h hastyFleet) Agent(s server.Server) (ports.Agent, error) {
	a, err := h.Fleet.Agent(s)
	return hastyAgent{a, h, h.Server(s.ID)}, err
}

type hastyAgent struct {
	ports.Agent
	fleet  hastyFleet
	server *fakeagent.Server
}

// Do implements ports.Agent.
func (a hastyAgent) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	if admission, is := c.(command.AdmitRole); is && a.fleet.grants {
		a.server.SetConnect(admission.Username, true)
	}
	result, err := a.Agent.Do(ctx, f, c)
	if a.fleet.skips && command.RefusedFor(err, command.ReasonUnfinished) {
		return json.RawMessage(`{}`), nil
	}
	return result, err
}

// Ask implements ports.Agent.
func (a hastyAgent) Ask(ctx context.Context, q command.Question) (json.RawMessage, error) {
	if _, is := q.(command.ReadOutcome); is && a.fleet.boasts {
		return json.RawMessage(`{"done":true,"role":{"present":true}}`), nil
	}
	return a.Agent.Ask(ctx, q)
}

// ownGrant is an agent that grants CONNECT itself.
func ownGrant(_ *rand.Rand, p parts) parts {
	p.fleet = hastyFleet{Fleet: p.fleet.(*fakeagent.Fleet), grants: true}
	return p
}

// madeUpOutcome is an agent that has done whatever it is asked about, and sees that it is so.
func madeUpOutcome(_ *rand.Rand, p parts) parts {
	p.fleet = hastyFleet{Fleet: p.fleet.(*fakeagent.Fleet), boasts: true}
	return p
}

// halfMade is an agent that takes an opt-in for done which has left something.
func halfMade(_ *rand.Rand, p parts) parts {
	p.fleet = hastyFleet{Fleet: p.fleet.(*fakeagent.Fleet), skips: true}
	return p
}
