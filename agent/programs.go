package agent

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/versions"
	"github.com/pgherd/pgherd/core/command"
)

// programs knows the versions of the programs that the agent works with. One that does not pass when this agent sees it for the
// first time ends the agent: it must not begin to serve customers with a known hole. One that is put in the place of another
// while the agent runs is only complained about, since customers would lose revocations and rotations with the agent.
type programs struct {
	policy   versions.Policy
	postgres ledger.Server
	console  *pooler.Console
	pgDump   string
	dumpAs   *syscall.Credential // see pgdump.Tool
	log      *zap.Logger
	back     chan struct{} // wakes the watch when PgBouncer uses the desired state again

	mu    sync.Mutex
	known map[versions.Program]versions.Verdict
}

func newPrograms(c Config, s ledger.Server, console *pooler.Console, log *zap.Logger) *programs {
	return &programs{
		policy: c.Versions, postgres: s, console: console, pgDump: c.PgDump, dumpAs: c.dumpAs(), log: log,
		back: make(chan struct{}, 1), known: make(map[versions.Program]versions.Verdict),
	}
}

// versionTime bounds how long one server may take to answer; one that hangs is not waited for.
const versionTime = 3 * time.Second

// look asks every program for its version; one that does not answer hides no other. It returns a *versions.Refusal for one that
// must not be worked with, and an error where PostgreSQL or pg_dump does not answer. PgBouncer may come later: its files are
// written by the agent.
func (p *programs) look(ctx context.Context) error { return p.lookAt(ctx, versions.Programs) }

func (p *programs) lookAt(ctx context.Context, which []versions.Program) error {
	asks := map[versions.Program]func(context.Context) (versions.Found, error){
		versions.PostgreSQL: p.askServer, versions.PgBouncer: p.askBouncer, versions.PgDump: p.askDump,
	}
	var failed error
	for _, program := range which {
		found, err := asks[program](ctx)
		switch {
		case err == nil:
			err = p.note(found)
		case errors.Is(err, pooler.ErrUnreachable):
			err = nil
		}
		failed = errors.Join(failed, err)
	}
	var refusal *versions.Refusal
	if errors.As(failed, &refusal) {
		return refusal
	}
	return failed
}

func (p *programs) askServer(ctx context.Context) (versions.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	return p.postgres.Version(ctx)
}

func (p *programs) askDump(ctx context.Context) (versions.Found, error) {
	return versions.Find(ctx, p.pgDump, p.dumpAs)
}

func (p *programs) askBouncer(ctx context.Context) (versions.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	text, err := p.console.Version(ctx)
	if err != nil {
		return versions.Found{}, err
	}
	return versions.Parse(text)
}

// note remembers a version, and logs one that is new.
func (p *programs) note(f versions.Found) error {
	v := p.policy.Judge(f)
	p.mu.Lock()
	before, known := p.known[f.Program]
	p.known[f.Program] = v
	p.mu.Unlock()
	if known && before.Text == f.Text {
		return nil
	}
	fields := []zap.Field{
		zap.String("version", v.Text), zap.Stringer("floor", v.Floor), zap.Bool("accepted", v.Accepted), zap.String("holes", v.Known()),
	}
	switch {
	case !v.Below:
		p.log.Info("version", zap.String("version", v.Text))
	case v.Passes:
		p.log.Warn("a version with known holes is let pass", fields...)
	case known:
		p.log.Error("a program was replaced by a version with known holes", fields...)
	default:
		return v.Admit()
	}
	return nil
}

// untilAllKnown and versionPause are the pauses between two looks, before and after every program was seen.
const (
	untilAllKnown = time.Second
	versionPause  = time.Minute
)

// watch looks again and again until ctx ends, and at once when PgBouncer uses the desired state again. Until every program was
// seen, it looks only for those that were not. It returns a *versions.Refusal.
func (p *programs) watch(ctx context.Context) error {
	for {
		which, pause := versions.Programs, versionPause
		if missing := p.missing(); len(missing) > 0 {
			which, pause = missing, untilAllKnown
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.back:
			which = versions.Programs
		case <-time.After(pause):
		}
		if err := p.lookAt(ctx, which); versions.Is(err) {
			return err
		} // That one does not answer is said by whoever needs it.
	}
}

// missing lists the programs that were not seen yet.
func (p *programs) missing() (unseen []versions.Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range versions.Programs {
		if _, known := p.known[name]; !known {
			unseen = append(unseen, name)
		}
	}
	return unseen
}

// report lists the programs in the protocol's form. One that has not answered yet has no version.
func (p *programs) report() []command.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]command.Program, 0, len(versions.Programs))
	for _, name := range versions.Programs {
		one := command.Program{Name: string(name), Holes: []string{}}
		if v, ok := p.known[name]; ok {
			one.Version, one.Floor, one.BelowFloor, one.Accepted = v.Text, v.Floor.String(), v.Below, v.Accepted
			for _, h := range v.Holes {
				one.Holes = append(one.Holes, h.IDs...)
			}
		}
		list = append(list, one)
	}
	return list
}

// Programs lists PostgreSQL, PgBouncer and pg_dump with what is known of their versions.
func (a *Agent) Programs() []command.Program { return a.programs.report() }

// checkVersions waits until PostgreSQL answers, and returns a *versions.Refusal before a predecessor loses charge.
func (a *Agent) checkVersions(ctx context.Context) error {
	for _, version := range a.config.Versions.Accept {
		a.log.Warn("a version with known holes would be accepted (--accept-versions)", zap.String("version", version))
	}
	return a.judged(ctx, "looking at versions", a.programs.look, versions.Is)
}
