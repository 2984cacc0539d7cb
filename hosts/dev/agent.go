package dev

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/agentd"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// runningAgent is the agent of this process, and after its end the next one. Its methods are for one goroutine at a time.
type runningAgent struct {
	make    func() (*agent.Agent, error)
	current atomic.Pointer[agent.Agent]
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // set when ended is closed
}

// measured is the agent that was started last, for any goroutine.
func (r *runningAgent) measured() agentd.Measured { return r.current.Load() }

// startAgent starts the agent, with its crash points armed.
func (s Settings) startAgent(
	ctx context.Context, g *infrastructure, log *zap.Logger, clock *system.Clock,
) (*runningAgent, error) {
	r := &runningAgent{make: func() (*agent.Agent, error) { return s.newAgent(g, log, clock) }}
	wiring.ArmAgent()
	return r, r.start(ctx)
}

// start starts an agent and waits until it is in charge: then PgBouncer's files stand. The end of ctx cuts only the start short.
func (r *runningAgent) start(ctx context.Context) error {
	a, err := r.make()
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel, r.ended = cancel, make(chan struct{})
	r.current.Store(a)
	go func() {
		defer close(r.ended)
		r.err = a.Run(running)
	}()
	select {
	case <-a.Started():
		return nil
	case <-r.ended:
		cancel()
		return fmt.Errorf("the agent has ended: %w", r.err)
	case <-ctx.Done():
		r.stop()
		return context.Cause(ctx)
	}
}

// agentChild is the agent for a supervisor, as in production it is restarted by its service manager.
func (s Settings) agentChild(r *runningAgent) child {
	return child{"the agent" + s.of, s.logFile(), r.start, r.done, r.exit}
}

func (r *runningAgent) stop() {
	r.cancel()
	<-r.ended
}

func (r *runningAgent) done() <-chan struct{} { return r.ended }

func (r *runningAgent) exit() string { return fmt.Sprint(r.err) }

func (s Settings) newAgent(g *infrastructure, log *zap.Logger, clock *system.Clock) (*agent.Agent, error) {
	agentTLS, err := g.ca.Issue("agent", loopback, publicHost)
	if err != nil {
		return nil, err
	}
	poolerTLS, err := g.ca.Issue("pooler", publicHost, loopback)
	if err != nil {
		return nil, err
	}
	uid, gid, switched, err := cluster.ChildUser()
	if err != nil {
		return nil, err
	}
	var owner *pooler.Owner
	if switched {
		owner = &pooler.Owner{UID: uid, GID: gid}
	}
	sockets, err := cluster.SocketDir(s.path("pooler", "socket"))
	if err != nil {
		return nil, err
	}
	p := pooler.DefaultSettings()
	p.Dir, p.SocketDir = s.path("pooler"), sockets
	p.ListenAddresses, p.ListenPort = []string{loopback}, s.PoolerPort
	p.TLSCertFile, p.TLSKeyFile = poolerTLS.CertFile, poolerTLS.KeyFile
	p.LogFile = s.poolerLog()
	own, err := certfile.Open("agent", agentTLS.CertFile, agentTLS.KeyFile)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{
		Listen: address(s.AgentPort), Certificate: own.Certificate, Secrets: func() []string { return []string{g.agentSecret} },
		CredentialsFile: s.credentialsFile(), PostgresHost: loopback, PostgresPort: s.PostgresPort,
		Pooler: p, PoolerOwner: owner, BackupDir: s.path("backups"), Blobs: s.Blobs, Bucket: s.Objects,
		PgDump: g.tools.PgDump, DataDir: s.StateDir,
		Archive: g.archive, Version: version.Version(), Versions: developmentVersions, Languages: developmentLanguages,
	}, agent.Deps{Log: log.Named("agent" + s.of), Now: clock.Now})
}
