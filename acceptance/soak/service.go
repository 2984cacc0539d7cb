//go:build linux

package soak

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// service is a process that is started again whenever it ends, as a service manager does.
type service struct {
	name    plan.Part
	process func() process
	start   func(context.Context) error

	mu     sync.Mutex
	starts int
	last   error // of a start
}

// process is one run of a service.
type process struct {
	done <-chan struct{}
	pid  int
	// freeze and thaw halt it with its children, and let it go on.
	freeze, thaw func() error
}

// restartPause is what a service manager waits before it starts a service again.
const restartPause = 300 * time.Millisecond

// supervise starts the service again until the context ends.
func (s *service) supervise(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.current().done:
		}
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartPause):
			}
			if s.again(ctx) == nil {
				break
			}
		}
	}
}

func (s *service) current() process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process()
}

// again starts it once. What did not start, because its disk is full say, is started again.
func (s *service) again(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	s.last = s.start(ctx)
	return s.last
}

// kill sends SIGKILL.
func (s *service) kill() error { return ignoreEnded(syscall.Kill(s.current().pid, syscall.SIGKILL)) }

// runs is an error unless the service runs.
func (s *service) runs() error {
	select {
	case <-s.current().done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%s has ended, and was started %d times again: %w", s.name, s.starts, s.last)
	default:
		return nil
	}
}

// ofStack is a run of one of the program's processes.
func ofStack(p *stack.Process) process { return process{p.Done(), p.Pid(), p.Freeze, p.Thaw} }

// hostService is a host, which keeps its addresses.
func hostService(name plan.Part, h *stack.Host) *service {
	return &service{
		name: name, process: func() process { return ofStack(h.Process) },
		start: func(context.Context) error { return h.Relaunch("") },
	}
}

// agentService is the agent of a server.
func agentService(name plan.Part, s *stack.Stack) *service {
	now := s.FirstAgent()
	return &service{
		name: name, process: func() process { return ofStack(now) },
		start: func(context.Context) error {
			next, err := s.LaunchAgent("")
			if err == nil {
				now = next
			}
			return err
		},
	}
}

// postgresService is a cluster. Its recovery takes as long as it takes.
func postgresService(name plan.Part, p *cluster.Postgres) *service {
	return &service{
		name: name, process: func() process { return process{p.Done(), p.Pid(), p.Freeze, p.Thaw} },
		start: func(ctx context.Context) error { return p.Recover(context.WithoutCancel(ctx)) },
	}
}

// poolerService is PgBouncer.
func poolerService(name plan.Part, p *cluster.Pooler) *service {
	return &service{
		name: name, process: func() process { return process{p.Done(), p.Pid(), p.Freeze, p.Thaw} },
		start: func(ctx context.Context) error { return p.Start(context.WithoutCancel(ctx)) },
	}
}
