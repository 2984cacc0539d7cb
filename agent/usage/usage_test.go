package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

// world is a server as a meter sees it.
type world struct {
	seen   map[id.DatabaseID]Sighting
	silent atomic.Bool // the pooler does not answer
	*Meter
}

func newWorld(databases ...id.DatabaseID) *world {
	w := &world{seen: map[id.DatabaseID]Sighting{}}
	for _, db := range databases {
		w.seen[db] = Sighting{}
	}
	w.Meter = New(func(context.Context) (map[id.DatabaseID]Sighting, error) {
		if w.silent.Load() {
			return nil, errors.New("PgBouncer does not answer")
		}
		return maps.Clone(w.seen), nil
	}, zap.NewNop())
	return w
}

// run has the meter look for as long as the test changes what there is to see.
func (w *world) run(t *testing.T, change func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	change()
	stop()
	<-ended
}

// asked is all that comes after a position, and the next one.
func (w *world) asked(t *testing.T, after string) (list []usage.Stretch, next string) {
	t.Helper()
	for more := true; more; {
		used := check.Must(w.Use(t.Context(), command.AskUsage{After: after}))(t)
		check.NoError(t, command.AskUsage{After: used.Next}.Check())
		list, after, more = append(list, used.Stretches...), used.Next, used.More
	}
	return list, after
}

// sum is what stretches have of a database.
func sum(list []usage.Stretch, of id.DatabaseID) (a usage.Activity) {
	for _, s := range list {
		for _, d := range s.Databases {
			if d.DatabaseID == of {
				a.SeenMs, a.ActiveMs, a.WaitingMs = a.SeenMs+d.SeenMs, a.ActiveMs+d.ActiveMs, a.WaitingMs+d.WaitingMs
				a.ActivePeak, a.WaitingPeak = max(a.ActivePeak, d.ActivePeak), max(a.WaitingPeak, d.WaitingPeak)
				a.Queries, a.WaitUs = a.Queries+d.Queries, a.WaitUs+d.WaitUs
			}
		}
	}
	return a
}

func counted(queries, wait int64) [2]usage.Counters {
	return [2]usage.Counters{{Queries: queries, WaitUs: wait}}
}

func TestWhatIsSeenOfADatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("shop", "idle")
		w.seen["shop"] = Sighting{Active: 2, Counted: counted(1000, 5)} // before anybody looked
		w.run(t, func() {
			time.Sleep(time.Minute + time.Millisecond)
			w.seen["shop"] = Sighting{Active: 4, Waiting: 1, Counted: counted(1600, 25)}
			time.Sleep(time.Minute)
			w.seen["shop"] = Sighting{Counted: counted(10, 7)} // the pooler has begun anew
			w.seen["new"] = Sighting{Active: 1, Counted: counted(99, 99)}
			time.Sleep(time.Minute)
			delete(w.seen, "idle")
			time.Sleep(time.Minute)
		})
		list, _ := w.asked(t, command.UsageFromStart)
		want := usage.Activity{
			SeenMs: 240_000, ActiveMs: 360_000, WaitingMs: 60_000, ActivePeak: 4, WaitingPeak: 1, Queries: 610, WaitUs: 27,
		}
		if got := sum(list, "shop"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := sum(list, "idle"); got != (usage.Activity{SeenMs: 180_000}) {
			t.Errorf("idle: %+v", got)
		}
		if got := sum(list, "new"); got != (usage.Activity{SeenMs: 115_000, ActiveMs: 115_000, ActivePeak: 1}) {
			t.Errorf("new: %+v", got)
		}
	})
}

// What nobody saw is in no stretch, and no stretch lies across it, nor across the end of ten minutes.
func TestGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("shop")
		w.run(t, func() {
			time.Sleep(15*time.Minute + time.Millisecond) // it begins with an hour
			w.silent.Store(true)
			time.Sleep(time.Minute)
			w.silent.Store(false)
			time.Sleep(time.Minute)
		})
		list, _ := w.asked(t, command.UsageFromStart)
		var got []string
		for _, s := range list {
			got = append(got, fmt.Sprintf("%d s, %d s ago", s.LastedMs/1000, s.EndedMs/1000))
		}
		if want := "[600 s, 420 s ago 300 s, 120 s ago 55 s, 0 s ago]"; fmt.Sprint(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := sum(list, "shop").SeenMs; got != 955_000 {
			t.Errorf("seen for %d ms", got)
		}
	})
}

// Where the clocks part, the machine may have slept: what was seen before that lies nobody knows where.
func TestAMachineThatSlept(t *testing.T) {
	w, at := newWorld("shop"), time.Now()
	look := func(seconds, slept int) {
		passed := at.Add(time.Duration(seconds) * time.Second)
		w.note(glance{moment{passed, passed.Add(time.Duration(slept) * time.Second).Round(0)}, w.seen})
	}
	for s := range 10 {
		look(5*s, 0)
	}
	look(50, 3600)
	if list := w.after(w.first, 0, at.Add(50*time.Second)).Stretches; len(list) != 0 {
		t.Errorf("%+v", list)
	}
	look(55, 3600)
	look(60, 3610) // a clock that is set right by little
	w.close()
	list := w.after(w.first, 0, at.Add(60*time.Second)).Stretches
	if len(list) != 1 || list[0].LastedMs != 10_000 || list[0].EndedMs != 0 {
		t.Errorf("%+v", list)
	}
}

func TestAnswersComeInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2*command.SeenAtOnce + 7
		w := newWorld()
		for n := range many {
			w.seen[id.DatabaseID(fmt.Sprintf("db-%05d", n))] = Sighting{Active: 1}
		}
		w.run(t, func() { time.Sleep(20*time.Minute + time.Second) })
		first := check.Must(w.Use(t.Context(), command.AskUsage{After: command.UsageFromStart}))(t)
		if len(first.Stretches) != 1 || len(first.Stretches[0].Databases) != command.SeenAtOnce || !first.More {
			t.Fatalf("%d stretches, more: %t", len(first.Stretches), first.More)
		}
		list, next := w.asked(t, command.UsageFromStart) // again, as when an answer is lost
		names := map[string]int{}
		for _, s := range list {
			names[s.Name] += len(s.Databases)
		}
		if len(names) != 2 || len(list) < 5 || sum(list, "db-00000").SeenMs != 1_200_000 || sum(list, "db-04006").SeenMs != 1_200_000 {
			t.Errorf("%v in %d parts, %+v", names, len(list), sum(list, "db-00000"))
		}
		if list, _ := w.asked(t, next); len(list) != 0 || w.held != 0 {
			t.Errorf("%d stretches after all were stored, and %d databases kept", len(list), w.held)
		}
		w.run(t, func() { time.Sleep(5*time.Second + time.Millisecond) })
		for _, after := range []string{next, "another.7.0", "another.7", command.UsageFromStart} {
			if list, _ := w.asked(t, after); sum(list, "db-00000").SeenMs != 6000 {
				t.Errorf("after %s: %+v", after, sum(list, "db-00000"))
			}
		}
	})
}

// While nobody asks, memory is bounded, and the newest is kept.
func TestNobodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("shop")
		w.run(t, func() { time.Sleep(3 * keepFor) })
		list, _ := w.asked(t, command.UsageFromStart)
		if seen := sum(list, "shop").SeenMs; seen < keepFor.Milliseconds() || seen > (keepFor+time.Hour).Milliseconds() {
			t.Errorf("%d stretches, %d ms", len(list), seen)
		}
	})
	w, at := newWorld(), time.Now()
	for n := range mostKept/2 + 1 {
		w.seen[id.DatabaseID(fmt.Sprint(n))] = Sighting{}
	}
	for n := range 10 {
		passed := at.Add(time.Duration(n) * lookEvery)
		w.note(glance{moment{passed, passed.Round(0)}, w.seen})
		w.close()
	}
	if len(w.kept) != 1 || w.held != len(w.seen) {
		t.Errorf("%d stretches with %d databases", len(w.kept), w.held)
	}
}
