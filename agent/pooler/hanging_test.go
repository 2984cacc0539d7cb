package pooler

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

func TestWhenAPgBouncerThatHangsIsEnded(t *testing.T) {
	type look struct {
		after time.Duration // the look before
		seen  sign
		end   bool
	}
	const second, limit = time.Second, 10 * time.Second
	for what, looks := range map[string][]look{
		"it answers":               {{0, signOfLife, false}, {14 * second, signOfLife, false}, {14 * second, signOfLife, false}},
		"it is not there":          {{0, signOfNone, false}, {14 * second, signOfNone, false}},
		"it hangs":                 {{0, signOfHang, false}, {9 * second, signOfHang, false}, {second, signOfHang, true}},
		"it answers at last":       {{0, signOfHang, false}, {9 * second, signOfLife, false}, {9 * second, signOfHang, false}},
		"it answers in between":    {{0, signOfHang, false}, {second, signOfLife, false}, {9 * second, signOfHang, false}},
		"it is started in between": {{0, signOfHang, false}, {second, signOfNone, false}, {9 * second, signOfHang, false}},
		"it hangs on": {
			{0, signOfHang, false}, {limit, signOfHang, true}, {second, signOfHang, false}, {9 * second, signOfHang, true},
		},
		"nobody has looked for some time": {{0, signOfHang, false}, {hangGap + second, signOfHang, false}, {limit, signOfHang, true}},
		"the first look is after a long time": {
			{24 * time.Hour, signOfHang, false}, {9 * second, signOfHang, false}, {second, signOfHang, true},
		},
	} {
		s, now := silence{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, l := range looks {
			now = now.Add(l.after)
			if end := s.note(now, l.seen, limit); end != l.end {
				t.Errorf("%s: look %d ends it: %t", what, i, end)
			}
		}
	}
}

// endHanging has what hangs ended after a short time, and returns what is told of it.
func endHanging(t *testing.T, p *Pooler) <-chan *Hang {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan *Hang, 100)
	var wg sync.WaitGroup
	wg.Go(func() { p.EndHanging(ctx, 50*time.Millisecond, time.Second, func(h *Hang) { hangs <- h }) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	return hangs
}

func next(t *testing.T, hangs <-chan *Hang) *Hang {
	t.Helper()
	select {
	case h := <-hangs:
		return h
	case <-time.After(check.Patience):
		t.Fatal("nothing is told")
		return nil
	}
}

// A PgBouncer that is there and never answers is ended, so that whoever has started it starts another, and customers come in.
func TestPgBouncerThatHangsIsEnded(t *testing.T) {
	s := realStack(t)
	hangs := endHanging(t, s.pooler)
	freeze(t, s)
	if h := next(t, hangs); h == nil || h.Ended || !strings.Contains(h.String(), "is ended after 35s") {
		t.Errorf("at first: %v", h)
	}
	select {
	case <-s.bouncer.Done():
	case <-time.After(check.Patience):
		t.Fatal("it is still there")
	}
	if h := next(t, hangs); h == nil || !h.Ended || h.Err != nil || !strings.Contains(h.String(), "it was killed") {
		t.Errorf("then: %v", h)
	}
	check.NoError(t, s.bouncer.Start(context.WithoutCancel(t.Context())))
	if h := next(t, hangs); h != nil {
		t.Errorf("at last: %v", h)
	}
	check.NoError(t, s.enter(t, "shop", "shop", ""))
}

// Where the agent may not kill it, somebody else is asked for that, until it answers.
func TestWhoMayNotEndPgBouncerAsksForIt(t *testing.T) {
	s := realStack(t)
	settings := s.settings
	settings.Dir = t.TempDir() // so it is not the process that the agent knows
	p := New(settings, s.owner)
	defer p.Close()
	hangs := endHanging(t, p)
	freeze(t, s)
	for h := next(t, hangs); h == nil || h.Err == nil; h = next(t, hangs) {
	}
	if _, err := os.Stat(HangFile(settings.Dir)); err != nil {
		t.Error(err)
	}
	select {
	case <-s.bouncer.Done():
		t.Fatal("it was ended")
	default:
	}
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	found := check.Must(s.pooler.Differences(soon, s.defaultState()))(t)
	if len(found) != 1 || found[0].Where != command.PoolerDown || !strings.Contains(found[0].What, "hangs") {
		t.Errorf("the doctor hears %+v", found)
	}
	check.NoError(t, s.bouncer.Thaw())
	for h := next(t, hangs); h != nil; h = next(t, hangs) {
	}
	check.Eventually(t, "it is still to be ended", func() bool {
		_, err := os.Stat(HangFile(settings.Dir))
		return errors.Is(err, os.ErrNotExist)
	})
}
