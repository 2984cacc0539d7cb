package rounds_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/ports"
)

// piece is a piece of work of the tests.
type piece struct {
	server  id.ServerID
	account id.AccountID
	name    string
}

// world is a runner with one task, whose pieces of work do what the test says.
type world struct {
	*rounds.Runner
	mu     sync.Mutex
	left   []piece
	done   []string
	log    []string
	do     func(ctx context.Context, p piece) error
	silent map[id.ServerID]bool
	asked  int
	held   int // the brake holds from this time on that it is asked; 0: never
}

func newWorld(left ...piece) *world {
	w := &world{left: left, silent: map[id.ServerID]bool{}}
	w.Runner = rounds.New(fakeclock.New(), w, w.may, func(ctx context.Context, s id.ServerID) error {
		if w.silent[s] {
			return ports.ErrAgentUnreachable
		}
		return &command.Refusal{Reason: command.ReasonUnavailable} // an answer, too
	})
	rounds.RegisterServers(w.Runner, rounds.ServerTask[piece]{
		Name: "pieces", Every: time.Millisecond, Limit: 300 * time.Millisecond,
		Find: func(context.Context, time.Time) ([]piece, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.left), nil
		},
		Of:  func(p piece) (id.ServerID, id.AccountID) { return p.server, p.account },
		Key: func(p piece) string { return p.name },
		Do: func(ctx context.Context, _ time.Time, p piece) error {
			err := w.do(ctx, p)
			w.mu.Lock()
			defer w.mu.Unlock()
			if err == nil {
				w.done = append(w.done, p.name)
				w.left = slices.DeleteFunc(w.left, func(l piece) bool { return l == p })
			}
			return err
		},
	})
	return w
}

func (w *world) may(context.Context, brake.Work, id.ServerID) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked++; w.held > 0 && w.asked >= w.held {
		return time.Time{}, brake.Held{{Reason: brake.Clock}}
	}
	return fakeclock.Start, nil
}

// Log implements ports.Journal.
func (w *world) Log(_ context.Context, e ports.JournalEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, e.What+" "+e.Kind)
}

func (w *world) have() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.done)
}

func works(context.Context, piece) error { return nil }

// run does rounds until the pieces are done or the time is up, and reports which were.
func (w *world) run(t *testing.T, most time.Duration, want ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	for began := time.Now(); time.Since(began) < most; time.Sleep(time.Millisecond) {
		if got := w.have(); len(got) >= len(want) {
			break
		}
	}
	got := w.have()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("done in %s: %v, want %v", most, got, want)
	}
	stop()
	<-ended
}

func TestInOrder(t *testing.T) {
	w := newWorld(piece{"s", "a", "1"}, piece{"s", "a", "2"}, piece{"s", "a", "3"})
	w.do = works
	if err := w.Once(t.Context()); err != nil || !slices.Equal(w.have(), []string{"1", "2", "3"}) {
		t.Errorf("%v, %v", w.have(), err)
	}
}

// What the brake holds while a round is under way is not begun any more.
func TestHeld(t *testing.T) {
	for held, want := range [][]string{nil, nil, nil, {"1"}} {
		w := newWorld(piece{"s", "a", "1"}, piece{"s", "a", "2"})
		w.do, w.held = works, held
		if err := w.Once(t.Context()); held > 0 && !slices.Equal(w.have(), want) {
			t.Errorf("held from the question %d on: %v, %v", held, w.have(), err)
		}
		if held == 1 && !slices.Equal(w.log, []string{"round.held pieces"}) {
			t.Error(w.log)
		}
	}
}

// A piece that hangs delays neither another server nor another account on the same one, and not its own account for long.
func TestAPieceThatHangs(t *testing.T) {
	w := newWorld(piece{"one", "a", "hangs"}, piece{"one", "b", "beside"}, piece{"two", "a", "elsewhere"})
	w.do = func(ctx context.Context, p piece) error {
		if p.name == "hangs" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	w.run(t, 200*time.Millisecond, "beside", "elsewhere")
}

// After an error that is no answer, an account's other pieces wait for the next round; after a refusal they do not.
func TestErrors(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		want []string
	}{
		"no answer":   {errors.New("reset"), []string{"2"}},
		"unavailable": {&command.Refusal{Reason: command.ReasonUnavailable}, []string{"2"}},
		"a refusal":   {&command.Refusal{Reason: command.ReasonFailed}, []string{"1b", "2"}},
	} {
		w := newWorld(piece{"s", "a", "1"}, piece{"s", "a", "1b"}, piece{"s", "b", "2"})
		w.do = func(_ context.Context, p piece) error {
			if p.name == "1" {
				return c.err
			}
			return nil
		}
		if err := w.Once(t.Context()); err != nil || !slices.Equal(w.have(), c.want) {
			t.Errorf("%s: %v, %v", what, w.have(), err)
		}
	}
}

// Pieces that never have an answer delay the others of their account once, however many they are: each round tries one of them,
// after all others.
func TestPiecesWithoutAnswer(t *testing.T) {
	bad := []piece{{"s", "a", "bad1"}, {"s", "a", "bad2"}}
	w := newWorld(append(bad, piece{"s", "a", "first"})...)
	var tried []string
	w.do = func(_ context.Context, p piece) error {
		tried = append(tried, p.name)
		if slices.Contains(bad, p) {
			return &command.Refusal{Reason: command.ReasonUnavailable}
		}
		return nil
	}
	for _, want := range [][]string{
		{"bad1"}, {"bad2"}, {"first", "bad1"}, {"new", "bad2"}, {"bad1"}, {"bad2"},
	} {
		if want[0] == "new" {
			w.left = append(w.left, piece{"s", "a", "new"})
		}
		tried = nil
		if err := w.Once(t.Context()); err != nil || !slices.Equal(tried, want) {
			t.Errorf("tried %v, want %v (%v)", tried, want, err)
		}
	}
}

// Of a server that gives no sign of life nothing is asked, and nothing is written for it.
func TestAnOutage(t *testing.T) {
	w := newWorld(piece{"dead", "a", "1"}, piece{"alive", "a", "2"})
	w.do, w.silent["dead"] = works, true
	if err := w.Once(t.Context()); err != nil || !slices.Equal(w.have(), []string{"2"}) {
		t.Errorf("%v, %v", w.have(), err)
	}
	if !slices.Contains(w.log, "round.no_answer pieces") || !slices.Contains(w.log, "round.done pieces") {
		t.Error(w.log)
	}
	w.silent["dead"] = false
	w.run(t, 5*time.Second, "1", "2")
}

// A task that hangs or fails delays no other, and its round has an end.
func TestATaskThatHangs(t *testing.T) {
	w := newWorld(piece{"s", "a", "1"})
	w.do = works
	ended := make(chan error, 100)
	rounds.Register(w.Runner, rounds.Task{Name: "hangs", Every: time.Millisecond, Limit: 20 * time.Millisecond,
		Do: func(ctx context.Context, _ time.Time) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}})
	w.run(t, 5*time.Second, "1")
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	err := w.Once(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) || !slices.Contains(w.log, "round.failed hangs") {
		t.Errorf("%v, %v", err, w.log)
	}
}
