package pooler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Read returns the desired state at the time of the call. It must only query: it runs once for many callers.
type Read func(ctx context.Context) (State, error)

// Pooler makes PgBouncer follow the desired state. There must be one for each PgBouncer.
type Pooler struct {
	*Console
	owner *Owner

	mu      sync.Mutex
	waiting *round // takes callers until it starts
	running bool
	soon    collection // of SyncSoon; the next round takes it
	closed  bool
	desired *applied // what PgBouncer should use, once a state has been written

	reloaded error // how the last round ended
	listened bool  // Watch has seen somebody listen on the customers' port

	// Of the rounds, of which one runs at a time.
	vigil vigil
	seen  string // the mark of the state that PgBouncer was last seen to use
}

type applied struct {
	state State
	files Files
}

// round is one reload that any number of callers share.
type round struct {
	read Read
	done chan struct{}
	err  error
}

// New makes a pooler. The settings say where PgBouncer's console is; owner may be nil if PgBouncer runs as the same user.
func New(s Settings, owner *Owner) *Pooler {
	return &Pooler{Console: NewConsole(s), owner: owner, vigil: vigil{}}
}

// roundTime bounds one reload, including reading, rendering and verifying.
const roundTime = 30 * time.Second

// Write renders a state and puts the files in place without a reload: for a PgBouncer that is about to start.
func (p *Pooler) Write(s State) error {
	_, err := p.write(s)
	return err
}

// Apply makes s the state that PgBouncer uses. With concurrent callers, the state of the last call wins: call it in the order
// of your changes, or use Sync. See Sync for the guarantees.
func (p *Pooler) Apply(ctx context.Context, s State) error {
	return p.Sync(ctx, func(context.Context) (State, error) { return s, nil })
}

// Sync reads the desired state and returns once PgBouncer was seen to use it, or a newer one. Concurrent callers share a
// reload: read is called after Sync was, so a change that was committed before the call is included.
//
// It returns ErrUnwritable (nothing was written), ErrUnreachable (the files are in place for PgBouncer's next start; Watch
// applies them when it is back), ErrNotTakenOver, or read's own error. When ctx ends first, the reload goes on.
func (p *Pooler) Sync(ctx context.Context, read Read) error {
	return wait(ctx, p.join(read, true))
}

// SyncSoon is Sync for changes that nobody needs to wait for, as when a database is gone: PgBouncer uses the desired state within
// SoonTime, or LateTime at most where its files are very long. Changes that come one soon after the other, and a Sync meanwhile,
// are one reload. One that fails is tried again.
func (p *Pooler) SyncSoon(read Read) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.soon.add(func() { p.join(read, true) })
	}
}

// SyncCollected returns once PgBouncer was seen to use what SyncSoon has collected, if it has collected anything.
func (p *Pooler) SyncCollected(ctx context.Context, read Read) error {
	p.mu.Lock()
	collected := p.soon.timer != nil
	p.mu.Unlock()
	if !collected {
		return nil
	}
	return p.Sync(ctx, read)
}

// again has what was collected for a reload that has failed, and what lingers, wait for the next one.
func (p *Pooler) again(read Read) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.soon.addAfter(SoonTime, func() { p.join(read, false) })
	}
}

// Close ends the idle connections, and forgets what SyncSoon has collected: whoever comes next reads the desired state.
func (p *Pooler) Close() {
	p.mu.Lock()
	p.closed = true
	p.soon.take()
	p.mu.Unlock()
	p.Console.Close()
}

// LastReload is how the last reload ended; nil before the first.
func (p *Pooler) LastReload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reloaded
}

func wait(ctx context.Context, r *round) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("pooler: reload not waited for: %w", ctx.Err())
	}
}

// join adds a caller to the round that starts next. What a newer caller reads replaces what an earlier one would have read.
func (p *Pooler) join(read Read, newer bool) *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = &round{done: make(chan struct{})}
		newer = true
	}
	if newer {
		p.waiting.read = read
	}
	if !p.running {
		p.running = true
		go p.rounds()
	}
	return p.waiting
}

// rounds runs rounds until no caller waits.
func (p *Pooler) rounds() {
	for {
		p.mu.Lock()
		r := p.waiting
		p.waiting = nil
		if r == nil {
			p.running = false
			p.mu.Unlock()
			return
		}
		soon := p.soon.take()
		p.mu.Unlock()
		r.err = p.round(r.read)
		p.mu.Lock()
		p.reloaded = r.err
		lingers := p.desired != nil && len(p.desired.state.Lingering) > 0
		p.mu.Unlock()
		if r.err != nil && soon || lingers {
			p.again(r.read)
		}
		close(r.done)
	}
}

// round reloads a second time where PgBouncer still holds logins to limits that the state no longer has.
func (p *Pooler) round(read Read) error {
	ctx, cancel := context.WithTimeout(context.Background(), roundTime)
	defer cancel()
	s, err := read(ctx)
	if err != nil {
		return fmt.Errorf("pooler: desired state: %w", err)
	}
	if s.Lingering, err = p.lingering(ctx, s); err != nil {
		return fmt.Errorf("pooler: earlier state: %w", err)
	}
	for range 2 {
		files, toLift, err := p.enforce(ctx, s)
		if err != nil {
			return err
		}
		if len(toLift) == 0 {
			p.watchOver(ctx, s, files.Mark)
			return sweepFiles(s.Settings.Dir, files)
		}
		s.Lifted = toLift
	}
	return fmt.Errorf("%w: %d logins keep limits that were lifted, one is %q", ErrNotTakenOver, len(s.Lifted), s.Lifted[0])
}

// enforce writes a state and returns once PgBouncer uses it, but for the logins that it still holds to earlier limits.
func (p *Pooler) enforce(ctx context.Context, s State) (files Files, toLift []string, err error) {
	next, err := p.write(s)
	if err != nil {
		return Files{}, nil, err
	}
	forced := make(chan error, 1)
	go func() { forced <- syncFolder(s.Settings.Dir) }()
	toLift, err = p.takeOver(ctx, next)
	return next.files, toLift, errors.Join(err, <-forced)
}

func (p *Pooler) write(s State) (applied, error) {
	files, err := Render(s)
	if err != nil {
		return applied{}, err
	}
	next := applied{s, files}
	if err := writeFiles(s.Settings.Dir, files, p.owner); err != nil {
		return applied{}, err
	}
	p.mu.Lock()
	p.desired, p.soon.lines = &next, s.lines()
	p.mu.Unlock()
	return next, nil
}

// takeOver reloads until the state is verified. A second attempt helps if PgBouncer restarted in between, or somebody else's
// RELOAD came while the files were being replaced; it does not help if PgBouncer cannot read a file.
func (p *Pooler) takeOver(ctx context.Context, next applied) (toLift []string, err error) {
	for attempt := range 3 {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(time.Duration(attempt) * 100 * time.Millisecond):
			}
		}
		if err = p.reload(ctx); err == nil {
			toLift, err = p.readBack(ctx, next.state, next.files)
		}
		if err == nil || !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrNotTakenOver) {
			return toLift, err
		}
	}
	return nil, err
}
