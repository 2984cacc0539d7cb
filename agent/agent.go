package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/rounds"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/id"
)

// ErrSuperseded is what Run returns when another agent has taken over the server.
var ErrSuperseded = executor.ErrSuperseded

// Agent works on one PostgreSQL server and its PgBouncer.
type Agent struct {
	config    Config
	log       *zap.Logger
	listener  net.Listener
	postgres  executor.Server
	pooler    *pooler.Pooler
	executor  *executor.Executor
	backups   *backups
	artifacts artifact.Config
	server    *server.Server
	programs  *programs
	languages *languageWatch

	inCharge   atomic.Bool
	started    chan struct{}
	poolerDown atomic.Bool
	clients    clients
}

// New makes an agent; nothing is started or connected before Run.
func New(c Config, d Deps) (*Agent, error) {
	secrets, err := c.complete()
	if err != nil {
		return nil, err
	}
	certificates, err := c.certificate()
	if err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	a := &Agent{
		config: c, log: d.Log, listener: d.Listener, pooler: pooler.New(c.Pooler, c.PoolerOwner),
		postgres: executor.Server{
			Host: c.PostgresHost, Port: c.PostgresPort, Password: secrets.AgentPassword, Instance: rand.Text(),
			Connections: c.Connections,
		},
		artifacts: c.artifacts(secrets.AgentPassword, d), started: make(chan struct{}),
	}
	a.artifacts.Claim = a.postgres.Claim
	a.programs = newPrograms(c, a.postgres, a.pooler.Console, d.Log)
	a.languages = newLanguageWatch(c, a.postgres, d.Log)
	a.backups = &backups{config: c, log: d.Log}
	if a.executor, err = executor.New(a.postgres, a.pooler, c.Pooler, a.backups, d.Log); err != nil {
		return nil, err
	}
	a.executor.BackupPause = c.BackupPause
	a.backups.size = a.executor.Size
	a.server, err = server.New(server.Config{
		Certificates: certificates, Secret: c.Secret, Version: c.Version, Commands: gated{a}, Files: gated{a}, Refusal: refusal,
		Health: &health.Collector{
			Machine: health.Host{DataDir: c.DataDir}, Maintenance: a.executor.DB(), Pooler: pooler.Report{Console: a.pooler.Console},
		},
		Programs: a.Programs, Log: d.Log,
	})
	return a, err
}

// InCharge reports whether the agent carries out commands.
func (a *Agent) InCharge() bool { return a.inCharge.Load() }

// PoolerAnswers reports whether PgBouncer answered when the agent last looked, which it does every second once it is in charge.
func (a *Agent) PoolerAnswers() bool { return !a.poolerDown.Load() }

// Started is closed once the agent is in charge and has written PgBouncer's files. A PgBouncer that never ran before must not
// be started earlier.
func (a *Agent) Started() <-chan struct{} { return a.started }

// Run listens, takes charge of the server as soon as PostgreSQL answers, and carries out commands. It returns nil when ctx
// ends, ErrSuperseded when another agent takes over, a *versions.Refusal for a program with known holes, and a
// *languages.Refusal for a trusted procedural language. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	listener, err := a.listen()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.server.Serve(ctx, listener) })
	group.Go(func() error { return a.lead(ctx) })
	group.Go(func() error { return a.onceInCharge(ctx, a.programs.watch) })
	group.Go(func() error { return a.onceInCharge(ctx, a.languages.watch) })
	err = group.Wait()
	a.executor.Stop()
	a.backups.close()
	a.pooler.Close()
	return err
}

func (a *Agent) listen() (net.Listener, error) {
	if a.listener != nil {
		return a.listener, nil
	}
	l, err := net.Listen("tcp", a.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("the agent cannot listen: %w", err)
	}
	return l, nil
}

// lead takes charge, prepares, and watches until ctx ends.
func (a *Agent) lead(ctx context.Context) error {
	if err := a.checkVersions(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := a.checkLanguages(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	leader := a.takeCharge(ctx)
	if leader == nil {
		return nil
	}
	defer leader.Release()
	defer a.inCharge.Store(false)
	if err := a.untilDone(ctx, "preparing", a.prepare); err != nil {
		return nil // ctx has ended
	}
	a.inCharge.Store(true)
	close(a.started)
	a.log.Info("this agent is in charge of the server")
	go a.pooler.Watch(ctx, watchPause, a.executor.PoolerState, a.poolerChanged)
	go a.shed(ctx)
	go a.prune(ctx)
	go a.executor.SweepChanged(ctx)
	go a.executor.SweepDead(ctx)
	go a.sweepBackups(ctx)
	return leader.Watch(ctx)
}

// poolerChanged hears from the watch over PgBouncer.
func (a *Agent) poolerChanged(err error) {
	down := errors.Is(err, pooler.ErrUnreachable)
	a.poolerDown.Store(down)
	switch {
	case down:
		a.log.Error("PgBouncer does not answer, so customers cannot connect", zap.Error(err))
	case err != nil:
		a.log.Warn("PgBouncer does not use the desired state", zap.Error(err))
	default:
		a.log.Info("PgBouncer uses the desired state again")
		rounds.Wake(a.programs.back)
	}
}

// prune removes old operations from the ledger, now and every day.
func (a *Agent) prune(ctx context.Context) {
	tick := time.NewTicker(prunePause)
	defer tick.Stop()
	for {
		switch n, err := a.executor.Prune(ctx); {
		case err != nil && ctx.Err() == nil:
			a.log.Warn("the ledger could not be pruned", zap.Error(err))
		case n > 0:
			a.log.Info("the ledger was pruned", zap.Int64("operations", n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepBackups removes the logins and copies that backups have left, now and again and again: a customer's transaction may be in
// the way of some for long.
func (a *Agent) sweepBackups(ctx context.Context) {
	rounds.Run(ctx, a.log, nil, "what backups have left is not removed", func(ctx context.Context) (time.Duration, error) {
		if err := a.backups.backuper.Sweep(ctx); err != nil {
			return sweepAgain, err
		}
		return sweepPause, nil
	})
}

const (
	watchPause = time.Second
	retryPause = time.Second
	sweepPause = time.Minute
	sweepAgain = 5 * time.Second // where something is left
	prunePause = 24 * time.Hour
)

// takeCharge returns nil if ctx ended first.
func (a *Agent) takeCharge(ctx context.Context) (leader *executor.Leader) {
	_ = a.untilDone(ctx, "taking charge", func(ctx context.Context) (err error) {
		leader, err = a.postgres.Lead(ctx)
		return err
	})
	return leader
}

// prepare ends what a predecessor left at work, and writes PgBouncer's files. PgBouncer need not run yet.
func (a *Agent) prepare(ctx context.Context) error {
	if err := a.backups.open(ctx, a.artifacts); err != nil {
		return err
	}
	err := a.pooler.Sync(ctx, a.executor.PoolerState)
	if errors.Is(err, pooler.ErrUnreachable) {
		return nil
	}
	return err
}

// untilDone retries until it works or ctx ends.
func (a *Agent) untilDone(ctx context.Context, what string, fn func(context.Context) error) error {
	for {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := fn(limited)
		cancel()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		a.log.Warn(what, zap.Error(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// gated lets requests through once the agent is in charge.
type gated struct{ *Agent }

var errNotInCharge = &executor.Refusal{Reason: protocol.ReasonUnavailable, Message: "the agent is not yet in charge"}

func (g gated) pass() error {
	if !g.inCharge.Load() {
		return errNotInCharge
	}
	return nil
}

// Execute implements server.Commands.
func (g gated) Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
	if err := g.pass(); err != nil {
		return nil, err
	}
	return g.executor.Execute(ctx, c)
}

// InspectLogin implements server.Commands.
func (g gated) InspectLogin(ctx context.Context, q protocol.LoginQuestion) (protocol.LoginAnswer, error) {
	if err := g.pass(); err != nil {
		return protocol.LoginAnswer{}, err
	}
	return g.executor.InspectLogin(ctx, q)
}

// SetAccounts implements server.Commands.
func (g gated) SetAccounts(ctx context.Context, accounts protocol.Accounts) error {
	if err := g.pass(); err != nil {
		return err
	}
	return g.executor.SetAccounts(ctx, accounts)
}

// Connections implements server.Commands.
func (g gated) Connections(ctx context.Context) (int, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.executor.Connections(ctx)
}

// Size implements server.Commands.
func (g gated) Size(ctx context.Context, db id.DatabaseID) (int64, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.executor.Size(ctx, db)
}
