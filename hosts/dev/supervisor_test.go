package dev

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

func TestPause(t *testing.T) {
	for bad, want := range map[int]time.Duration{
		0: 0, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 7: 30 * time.Second,
		1e6: 30 * time.Second,
	} {
		if got := pause(bad); got != want {
			t.Errorf("after %d bad starts the pause is %s, want %s", bad, got, want)
		}
	}
}

// restless is a child that ends a while after each start, and whose starts fail where it has a reason. It has died once.
type restless struct {
	lives  time.Duration
	reason error
	hangs  bool
	starts []time.Duration // since began
	began  time.Time
	ended  chan struct{}
}

func newRestless(lives time.Duration, reason error) *restless {
	r := &restless{lives: lives, reason: reason, began: time.Now(), ended: make(chan struct{})}
	close(r.ended)
	return r
}

func (r *restless) start(ctx context.Context) error {
	r.starts = append(r.starts, time.Since(r.began))
	if r.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if r.reason != nil {
		return r.reason
	}
	ended := make(chan struct{})
	r.ended = ended
	time.AfterFunc(r.lives, func() { close(ended) })
	return nil
}

// during supervises a child for a while; it returns what the terminal showed.
func (r *restless) during(t *testing.T, d time.Duration) string {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	release := supervise(ctx, &out, zap.NewNop(), child{
		name: "PgBouncer", logFile: "pooler.log", start: r.start, exit: func() string { return "signal: killed" },
		done: func() <-chan struct{} { return r.ended },
	})
	time.Sleep(d)
	synctest.Wait()
	cancel()
	n := len(r.starts)
	release()
	time.Sleep(time.Hour)
	if len(r.starts) != n {
		t.Error("a child was started after the end")
	}
	return out.String()
}

// seconds are the times of the starts, rounded down.
func (r *restless) seconds() (all []int) {
	for _, at := range r.starts {
		all = append(all, int(at.Seconds()))
	}
	return all
}

func TestAChildThatDiesSoonGetsGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(0, nil)
		out := r.during(t, 100*time.Second)
		if got, want := r.seconds(), []int{0, 1, 3, 7, 15, 31, 61, 91}; !slices.Equal(got, want) {
			t.Errorf("starts at %v, want %v", got, want)
		}
		for _, line := range []string{
			"PgBouncer has ended (signal: killed); it is started again. Its log is pooler.log\nPgBouncer runs again\n",
			"PgBouncer has ended (signal: killed); it is started again in 16s. Its log is pooler.log\nPgBouncer runs again\n",
		} {
			if strings.Count(out, line) != 1 {
				t.Errorf("not once %q in\n%s", line, out)
			}
		}
	})
}

func TestAChildThatRanForLongIsStartedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(goodAfter, nil)
		r.during(t, 35*time.Second)
		if got, want := r.seconds(), []int{0, 10, 20, 30}; !slices.Equal(got, want) {
			t.Errorf("starts at %v, want %v", got, want)
		}
	})
}

func TestAReasonDoesNotFloodTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(0, errors.New("PgBouncer: the port is taken"))
		out := r.during(t, 24*time.Hour)
		if len(r.starts) < 24*60*2 {
			t.Errorf("%d starts only", len(r.starts))
		}
		if n := strings.Count(out, "\n"); n < 5 || n > 20 {
			t.Errorf("%d lines:\n%s", n, out)
		}
		for _, line := range []string{
			"PgBouncer cannot be started: the port is taken; it is tried again in 1s\n",
			"PgBouncer cannot be started: the port is taken (2048 times now); it is tried again in 30s\n",
		} {
			if !strings.Contains(out, line) {
				t.Errorf("no %q in\n%s", line, out)
			}
		}
	})
}

func TestTheEndCutsAStartShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestless(0, nil)
		r.hangs = true
		if out := r.during(t, time.Minute); strings.Count(out, "\n") != 1 {
			t.Errorf("a start that was cut short is told as a failure:\n%s", out)
		}
	})
}
