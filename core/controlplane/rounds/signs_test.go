package rounds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/ports"
)

// looks are two tasks that look at a server in each round. They count how often the server is asked for a sign of life.
type looks struct {
	*rounds.Runner
	clock *fakeclock.Clock
	asked int
	found error // of each look
}

func newLooks(work brake.Work) *looks {
	l := &looks{clock: fakeclock.New()}
	l.Runner = rounds.New(l.clock, ports.NoJournal{},
		func(context.Context, brake.Work, id.ServerID) (time.Time, error) { return l.clock.Now(), nil },
		func(context.Context, id.ServerID) error { l.asked++; return nil })
	for _, name := range []string{"one", "another"} {
		rounds.RegisterServers(l.Runner, rounds.ServerTask[id.ServerID]{
			Name: name, Every: time.Second, Work: work,
			Find: func(context.Context, time.Time) ([]id.ServerID, error) { return []id.ServerID{"s"}, nil },
			Of:   func(s id.ServerID) (id.ServerID, id.AccountID) { return s, "" },
			Do:   func(context.Context, time.Time, id.ServerID) error { return l.found },
		})
	}
	return l
}

// asks are the questions for a sign of life in one round of both tasks.
func (l *looks) asks(t *testing.T) int {
	t.Helper()
	l.asked = 0
	if err := l.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l.asked
}

// All harmless looks at a server share one sign of life for a while, whoever of the process has had it.
func TestASignOfLifeIsShared(t *testing.T) {
	l := newLooks(brake.Harmless)
	for _, step := range []struct {
		what string
		then func()
		want int
	}{
		{"first", func() {}, 1},
		{"again at once", func() {}, 0},
		{"after nine seconds", func() { l.clock.Advance(9 * time.Second) }, 0},
		{"after ten", func() { l.clock.Advance(time.Second) }, 1},
		{"heard by others", func() { l.clock.Advance(time.Minute); l.Heard("s", true) }, 0},
		{"not heard by others", func() { l.Heard("s", false) }, 1},
		{"by a clock that was set back", func() { l.clock.Jump(-time.Hour) }, 1},
	} {
		step.then()
		if got := l.asks(t); got != step.want {
			t.Errorf("%s: asked %d times, want %d", step.what, got, step.want)
		}
	}
}

// A look that has no answer, or of which an agent of another protocol says that it does not understand it, ends what was heard; a
// refusal of the matter does not.
func TestWhatEndsASignOfLife(t *testing.T) {
	for what, c := range map[string]struct {
		found error
		want  int
	}{
		"no answer":        {errors.New("reset"), 1},
		"unavailable":      {command.Refuse(command.ReasonUnavailable, "x"), 1},
		"another protocol": {command.Refuse(command.ReasonOtherProtocol, "x"), 1},
		"a refusal":        {command.Refuse(command.ReasonFailed, "x"), 0},
	} {
		l := newLooks(brake.Harmless)
		l.Heard("s", true)
		l.found = c.found
		l.asks(t)
		l.found = nil
		if got := l.asks(t); got != c.want {
			t.Errorf("%s: asked %d times then, want %d", what, got, c.want)
		}
	}
}

// What goes by time asks in each round: it may write before it asks anything else.
func TestWhatDestroysAsksForASignOfLife(t *testing.T) {
	for _, work := range []brake.Work{brake.Destroys, brake.Schedules} {
		l := newLooks(work)
		l.Heard("s", true)
		if got := l.asks(t); got != 2 {
			t.Errorf("%v: asked %d times, want 2", work, got)
		}
	}
}
