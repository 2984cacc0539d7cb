package dev

import (
	"context"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/system"
)

// others are the database servers beside the first one, each with its agent.
type others []*neighbor

type neighbor struct {
	*infrastructure
	agent *runningAgent
}

// startOthers starts the further database servers, one after the other. If one does not start, all of them are stopped.
func (s Settings) startOthers(
	ctx context.Context, first *infrastructure, log *zap.Logger, clock *system.Clock,
) (all others, err error) {
	for n := 2; n <= s.Servers; n++ {
		one, err := s.server(n).startOther(ctx, first, log, clock)
		if err != nil {
			all.stop()
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (s Settings) startOther(
	ctx context.Context, first *infrastructure, log *zap.Logger, clock *system.Clock,
) (*neighbor, error) {
	if err := os.MkdirAll(s.StateDir, 0o755); err != nil {
		return nil, err
	}
	g, err := s.startServer(ctx, first.tools, first.ca)
	if err != nil {
		return nil, err
	}
	one := &neighbor{infrastructure: g}
	if one.agent, err = s.startAgent(ctx, g, log, clock); err == nil {
		err = g.startPooler(ctx)
	}
	if err != nil {
		one.stop()
		return nil, err
	}
	return one, nil
}

// stop stops the agent and what it works on.
func (n *neighbor) stop() {
	if n.agent != nil && n.agent.cancel != nil {
		n.agent.stop()
	}
	n.infrastructure.stop()
}

// stop stops all, the last one first.
func (o others) stop() {
	for _, n := range slices.Backward(o) {
		n.stop()
	}
}

// children are the processes of all, for a supervisor.
func (o others) children() (all []child) {
	for _, n := range o {
		all = append(append(all, n.children()...), n.settings.agentChild(n.agent))
	}
	return all
}
