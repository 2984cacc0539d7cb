package fakeagent

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Fleet implements ports.Fleet. It is safe for concurrent use.
type Fleet struct {
	clock ports.Clock

	mu      sync.Mutex
	servers map[id.ServerID]*Server
}

// New makes a fleet; its servers come into being when they are first asked for.
func New(clock ports.Clock) *Fleet {
	return &Fleet{clock: clock, servers: map[id.ServerID]*Server{}}
}

// Agent implements ports.Fleet.
func (f *Fleet) Agent(s server.Server) (ports.Agent, error) { return agent{f.Server(s.ID)}, nil }

// Survey implements ports.Fleet: everything is well, unless the agent cannot be reached or the test has said what is seen.
func (f *Fleet) Survey(ctx context.Context, s server.Server) server.Survey {
	on := f.Server(s.ID)
	if seen := on.seen(); seen != nil {
		return *seen
	}
	can, err := ports.Ask(ctx, agent{on}, command.AskCapabilities{})
	seen := server.Survey{
		Agent: server.Reach{Address: s.AgentURL, Ends: f.clock.Now().AddDate(1, 0, 0)}, Version: can.Version, Protocol: can.Protocol,
		Installation: can.Installation, Connections: can.Connections, Postgres: true, PgBouncer: true,
		SlowQueries: can.SlowQueries, PostgresVersion: can.PostgresVersion,
		Public: server.Reach{Address: s.PublicHost, Ends: f.clock.Now().AddDate(1, 0, 0)},
	}
	if err != nil {
		return server.Survey{Agent: seen.Agent.With(server.Refused, err), Public: seen.Public.With(server.Refused, err)}
	}
	return seen
}

// Shows has a survey of the server show this.
func (s *Server) Shows(seen server.Survey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sight = &seen
}

func (s *Server) seen() *server.Survey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sight
}

// Server returns what stands on a server, to look at and to break.
func (f *Fleet) Server(of id.ServerID) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.servers[of]
	if !ok {
		s = newServer(f.clock, f)
		s.installation = string(of)
		f.servers[of] = s
	}
	return s
}
