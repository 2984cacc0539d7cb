package floors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/command"
)

// Programs knows the versions of the programs that an agent works with. One that does not pass when this agent sees it for the
// first time ends the agent: it must not begin to serve customers with a known hole. One that is put in the place of another
// while the agent runs is only complained about, since customers would lose revocations and rotations with the agent.
type Programs struct {
	policy Policy
	asks   map[Program]Ask
	absent func(error) bool
	log    *zap.Logger
	back   chan struct{} // wakes the watch

	mu    sync.Mutex
	known map[Program]Verdict
}

// Ask asks a program for its version.
type Ask func(context.Context) (Version, error)

// NewPrograms returns those of All that asks has, which are asked so. PgBouncer may come later, since the agent writes its files:
// that it does not answer, as absent says of an error, is no error.
func NewPrograms(p Policy, asks map[Program]Ask, absent func(error) bool, log *zap.Logger) *Programs {
	return &Programs{
		policy: p, asks: asks, absent: absent, log: log, back: make(chan struct{}, 1), known: make(map[Program]Verdict),
	}
}

// Wake has the watch look at once, such as when PgBouncer uses the desired state again.
func (p *Programs) Wake() { loop.Wake(p.back) }

// Look asks every program for its version; one that does not answer hides no other. It returns a *Refusal for one that
// must not be worked with, and an error where PostgreSQL or pg_dump does not answer. PgBouncer may come later: its files are
// written by the agent.
func (p *Programs) Look(ctx context.Context) error { return p.lookAt(ctx, p.all()) }

// all lists those that are asked, in the order of All.
func (p *Programs) all() []Program {
	return slices.DeleteFunc(slices.Clone(All), func(name Program) bool { return p.asks[name] == nil })
}

func (p *Programs) lookAt(ctx context.Context, which []Program) error {
	var failed error
	for _, program := range which {
		found, err := p.asks[program](ctx)
		switch {
		case err == nil:
			err = p.note(found)
		case p.absent(err):
			err = nil
		}
		failed = errors.Join(failed, err)
	}
	var refusal *Refusal
	if errors.As(failed, &refusal) {
		return refusal
	}
	return failed
}

// note remembers a version, and logs one that is new.
func (p *Programs) note(f Version) error {
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
	case v.Unsupported && known:
		p.log.Error("PostgreSQL was replaced by a major version that is not supported", zap.String("version", v.Text))
	case v.Passes && !v.Below:
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

// Watch looks again and again until ctx ends, and at once when PgBouncer uses the desired state again. Until every program was
// seen, it looks only for those that were not. It returns a *Refusal.
func (p *Programs) Watch(ctx context.Context) error {
	for {
		which, pause := p.all(), versionPause
		if missing := p.missing(); len(missing) > 0 {
			which, pause = missing, untilAllKnown
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.back:
			which = p.all()
		case <-time.After(pause):
		}
		if err := p.lookAt(ctx, which); Is(err) {
			return err
		} // That one does not answer is said by whoever needs it.
	}
}

// Known is a program as it was last seen; false until it was.
func (p *Programs) Known(name Program) (Version, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.known[name]
	return v.Version, ok
}

// missing lists the programs that were not seen yet.
func (p *Programs) missing() (unseen []Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.all() {
		if _, known := p.known[name]; !known {
			unseen = append(unseen, name)
		}
	}
	return unseen
}

// Report lists the programs in the protocol's form. One that has not answered yet has no version.
func (p *Programs) Report() []command.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all()
	list := make([]command.Program, 0, len(all))
	for _, name := range all {
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
