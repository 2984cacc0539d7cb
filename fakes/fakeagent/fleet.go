package fakeagent

import (
	"sync"

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

// Server returns what stands on a server, to look at and to break.
func (f *Fleet) Server(of id.ServerID) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.servers[of]
	if !ok {
		s = newServer(f.clock)
		f.servers[of] = s
	}
	return s
}
