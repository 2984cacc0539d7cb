package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/health"
)

// Check looks again and again at one thing that must hold on a server.
type Check struct {
	Name string
	// Code is the reason that a report gives while the check fails; empty: none.
	Code health.Code
	// Every is the pause between two looks; after one that failed it is Again, where that is less.
	Every time.Duration
	// Limit is what a look may take. One that goes on longer is a reason too.
	Limit time.Duration
	// Look returns why the thing does not hold. A *Finding has a code of its own.
	Look func(ctx context.Context) error
}

// Again is the longest pause after a look that failed.
const Again = 2 * time.Second

// Finding is an error of a check that is another reason than the check's.
type Finding struct{ health.Reason }

// Find makes a Finding.
func Find(code health.Code, message string) *Finding {
	return &Finding{health.Reason{Code: code, Message: message}}
}

// Error implements error.
func (f *Finding) Error() string { return f.Message }

// State is what is known of a check.
type State struct {
	Name string
	// Succeeded is when it was last found that the thing holds, or that what is wrong is harmless; zero: never.
	Succeeded time.Time
	// Ended is whether it has ever come to an end.
	Ended bool
	// OK: the last look was such a success, and none hangs.
	OK bool
	// Reason is why the thing does not hold; nil where it does, or nobody knows yet.
	Reason *health.Reason
}

// running is a check with what it found.
type running struct {
	Check
	mu        sync.Mutex
	begun     time.Time // zero: no look goes on
	succeeded time.Time
	ended     bool
	err       error
}

// repeat looks until ctx ends. A look that overlooks its context hangs here, and is not begun a second time.
func (r *running) repeat(ctx context.Context) {
	for ctx.Err() == nil {
		pause := r.Every
		if !r.once(ctx) {
			pause = min(pause, Again)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (r *running) once(ctx context.Context) (success bool) {
	r.mu.Lock()
	r.begun = time.Now()
	r.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	err := r.Look(limited)
	if ctx.Err() != nil {
		return true // the agent ends, which says nothing
	}
	success = err == nil || harmless(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.ended, r.err = time.Time{}, true, err
	if success {
		r.succeeded = time.Now()
	}
	return success
}

func harmless(err error) bool {
	var found *Finding
	return errors.As(err, &found) && found.Code.Harmless()
}

// late is for a look that has heard of its limit and comes to its end.
const late = 2 * time.Second

func (r *running) state(now time.Time) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Name: r.Name, Succeeded: r.succeeded, Ended: r.ended}
	var found *Finding
	switch took := now.Sub(r.begun); {
	case !r.begun.IsZero() && took > r.Limit+late:
		s.Reason = &health.Reason{
			Code: health.CheckHangs, Message: "the check \"" + r.Name + "\" has not ended for " + took.Round(time.Second).String(),
		}
		return s
	case errors.As(r.err, &found):
		s.Reason = &found.Reason
	case r.err != nil && r.Code != "":
		s.Reason = &health.Reason{Code: r.Code, Message: fault.Line(r.err)}
	}
	s.OK = r.ended && (r.err == nil || harmless(r.err))
	return s
}
