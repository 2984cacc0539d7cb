package rounds

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Task is periodic work that asks no server.
type Task struct {
	Name  string
	Every time.Duration
	// Limit bounds one round; by default DefaultLimit.
	Limit time.Duration
	// Work says what the brake holds it for: everything, where nothing is said.
	Work brake.Work
	// Do gets the time of the round. It does not read the clock itself, unless its work is harmless: this time is compared.
	Do func(ctx context.Context, now time.Time) error
}

// DefaultLimit is longer than any round takes on a store that works.
const DefaultLimit = time.Minute

// Runner does the rounds of all registered tasks.
type Runner struct {
	clock   ports.Clock
	journal ports.Journal
	brake   Brake
	reach   func(ctx context.Context, s id.ServerID) error
	signs   signs
	tasks   []task
}

// task is a registered task. Its round starts what may have to wait for a server with start.
type task struct {
	name  string
	every time.Duration
	work  brake.Work
	round func(ctx context.Context, now time.Time, start func(work func())) error
}

// Brake returns the time by which work may be done, and brake.Held where it has to wait. on is the server on which it is done;
// empty for what asks none, or several.
type Brake func(ctx context.Context, w brake.Work, on id.ServerID) (time.Time, error)

// New makes a runner without tasks. It starts nothing: see Register and Run. reach asks a server for a sign of life.
func New(c ports.Clock, j ports.Journal, b Brake, reach func(ctx context.Context, s id.ServerID) error) *Runner {
	return &Runner{clock: c, journal: j, brake: b, reach: reach}
}

// Register adds a task. It is called before the runner runs.
func Register(r *Runner, t Task) {
	if t.Limit == 0 {
		t.Limit = DefaultLimit
	}
	r.tasks = append(r.tasks, task{name: t.Name, every: t.Every, work: t.Work, round: func(
		ctx context.Context, now time.Time, _ func(func()),
	) error {
		ctx, cancel := context.WithTimeout(ctx, t.Limit)
		defer cancel()
		return t.Do(ctx, now)
	}})
}

// Tasks lists the names of the registered tasks.
func (r *Runner) Tasks() (names []string) {
	for _, t := range r.tasks {
		names = append(names, t.name)
	}
	return names
}

// Works returns what the brake holds each task for, by its name.
func (r *Runner) Works() map[string]brake.Work {
	works := map[string]brake.Work{}
	for _, t := range r.tasks {
		works[t.name] = t.work
	}
	return works
}

// Run works until the context ends.
func (r *Runner) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, t := range r.tasks {
		running.Go(func() { r.repeat(ctx, t, running.Go) })
	}
	running.Wait()
}

func (r *Runner) repeat(ctx context.Context, t task, start func(work func())) {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		_ = r.round(ctx, t, start) // it is logged
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Once does one round of every task, and waits for all that it starts. A task that fails or is held does not prevent the others.
func (r *Runner) Once(ctx context.Context) error {
	var failed []error
	for _, t := range r.tasks {
		failed = append(failed, r.round(ctx, t, func(work func()) { work() }))
	}
	return errors.Join(failed...)
}

// mayNow asks the brake, which asks the store.
func (r *Runner) mayNow(ctx context.Context, w brake.Work, on id.ServerID) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultLimit)
	defer cancel()
	return r.brake(ctx, w, on)
}

func (r *Runner) round(ctx context.Context, t task, start func(work func())) error {
	began := r.clock.Now()
	now, err := r.mayNow(ctx, t.work, "")
	if err == nil {
		err = t.round(ctx, now, start)
	}
	if ctx.Err() != nil {
		return err
	}
	e := ports.JournalEvent{What: "round.done", Kind: t.name, Took: r.clock.Now().Sub(began), Routine: true}
	var held brake.Held
	switch {
	case errors.As(err, &held):
		e.What = "round.held" // the brake tells why
	case err != nil:
		e.What, e.Err = "round.failed", err
	}
	r.journal.Log(ctx, e)
	return err
}
