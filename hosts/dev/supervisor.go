package dev

import (
	"context"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
)

// child is a part of the host that may end by itself, and can be started again then.
type child struct {
	name    string
	logFile string
	// start returns when the child works. The end of ctx cuts the start short; once the child works, it may stop the child.
	start func(ctx context.Context) error
	// done is closed when the child of the last start has ended; exit then says how.
	done func() <-chan struct{}
	exit func() string
}

// supervise starts children again that end by themselves. Each has a goroutine, to which it belongs until release has returned.
// When ctx ends or release is called nothing is started any more, and what runs is left to run.
func supervise(ctx context.Context, out io.Writer, log *zap.Logger, children ...child) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, c := range children {
		s := &supervisor{child: c, report: report{c.name, c.logFile, out, log.With(zap.String("child", c.name))}}
		all.Go(func() { s.run(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// supervisor keeps one child running.
type supervisor struct {
	child  child
	report report
	bad    int // starts in a row that failed or whose child soon ended
}

func (s *supervisor) run(ctx context.Context) {
	for began := time.Now(); s.ends(ctx); began = time.Now() {
		if time.Since(began) >= goodAfter {
			s.bad = 0
		}
		s.report.ended(s.child.exit(), pause(s.bad))
		if !s.startAgain(ctx) {
			return
		}
	}
}

// ends waits for the end of the child; it is false when ctx ended first.
func (s *supervisor) ends(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-s.child.done():
	}
	return ctx.Err() == nil
}

// startAgain tries until the child works; it is false when ctx ended first.
func (s *supervisor) startAgain(ctx context.Context) bool {
	failures := map[string]int{} // by reason
	for {
		if !wait(ctx, pause(s.bad)) {
			return false
		}
		s.bad++
		err := s.start(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			s.report.works()
			return true
		}
		failures[err.Error()]++
		s.report.failed(err, failures[err.Error()], pause(s.bad))
	}
}

// start starts the child for as long as it lives: ctx can end the start, but not the child, whose turn to stop comes later.
func (s *supervisor) start(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	kept := context.AfterFunc(ctx, end)
	defer kept()
	return s.child.start(life)
}

const (
	// goodAfter is how long a child must have run for its start to count as good.
	goodAfter    = 10 * time.Second
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// pause is the time before a start, after so many in a row that were not good: none, then one that doubles up to the longest.
func pause(bad int) time.Duration {
	if bad == 0 {
		return 0
	}
	p := firstPause
	for ; bad > 1 && p < longestPause; bad-- {
		p *= 2
	}
	return min(p, longestPause)
}

// wait is false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	return ctx.Err() == nil
}
