package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/core/command"
)

func TestRealMoves(t *testing.T) {
	t.Parallel()
	source, target := agenttest.Logical(t), agenttest.Logical(t)
	pair := conformance.Pair{
		Source: startReal(t, source), Target: startReal(t, target),
		Peer: command.Peer{URL: "https://" + source.Config.Listen, CA: source.CA(t)},
	}
	conformance.Moves(t, 12, func(*testing.T) conformance.Pair { return pair })
}

func TestRealForwards(t *testing.T) {
	t.Parallel()
	source, target := agenttest.Logical(t), agenttest.Logical(t)
	source.GiveSockets(t)
	pair := conformance.Pair{
		Source: startReal(t, source), Target: startReal(t, target),
		Peer: command.Peer{URL: "https://" + source.Config.Listen, CA: source.CA(t)},
		Back: command.Peer{URL: "https://" + target.Config.Listen, CA: target.CA(t)},
	}
	conformance.Forwards(t, "127.0.0.1", target.Config.Pooler.ListenPort, func(*testing.T) conformance.Pair { return pair })
}
