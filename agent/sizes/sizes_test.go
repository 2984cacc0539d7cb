package sizes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// world is a server as a meter sees it.
type world struct {
	seen     []Sighting
	took     map[id.DatabaseID]time.Duration
	failing  map[id.DatabaseID]bool
	active   map[id.DatabaseID]time.Time // when a session last ended something
	measured []id.DatabaseID
	last     map[id.DatabaseID]time.Time
	gap      map[id.DatabaseID]time.Duration // the longest time between two measurements
	bytes    int64
	*Meter
}

func newWorld(seen ...Sighting) *world {
	w := &world{seen: seen, took: map[id.DatabaseID]time.Duration{}, failing: map[id.DatabaseID]bool{},
		active: map[id.DatabaseID]time.Time{}}
	look := func(context.Context) ([]Sighting, error) {
		seen := slices.Clone(w.seen)
		for i, s := range seen {
			if at, active := w.active[s.ID]; active {
				seen[i].Idle = time.Since(at)
			}
		}
		return seen, nil
	}
	w.Meter = New(look, func(ctx context.Context, db id.DatabaseID, limit time.Duration) (int64, time.Duration, error) {
		took := min(w.took[db], limit)
		w.mu.Lock()
		w.measured = append(w.measured, db)
		if at, before := w.last[db]; before {
			w.gap[db] = max(w.gap[db], time.Since(at))
		}
		w.last[db] = time.Now()
		w.mu.Unlock()
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return 0, took, ctx.Err()
		}
		if w.took[db] > limit || w.failing[db] {
			return 0, took, errors.New("it cannot be measured")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bytes++
		return w.bytes, took, nil
	}, zap.NewNop())
	return w
}

// idle is a database without a session.
func idle(db, account string) Sighting {
	return Sighting{ID: id.DatabaseID(db), Account: account, Idle: -1}
}

func writing(db, account string) Sighting {
	return Sighting{ID: id.DatabaseID(db), Account: account, Writing: true}
}

// during runs the meter for a while, and returns how often each database was measured.
func (w *world) during(t *testing.T, d time.Duration) map[id.DatabaseID]int {
	t.Helper()
	w.measured, w.last, w.gap = nil, map[id.DatabaseID]time.Time{}, map[id.DatabaseID]time.Duration{}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Run(ctx)
	count := map[id.DatabaseID]int{}
	for _, db := range w.measured {
		count[db]++
	}
	return count
}

func TestOnlyWhatMayHaveChangedIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(idle("idle", "a"), idle("written", "a"), writing("writing", "b"), idle("used", "b"))
		if n := w.during(t, time.Second); len(n) != 4 {
			t.Errorf("at the start: %v", n)
		}
		if n := w.during(t, time.Minute); n["idle"] != 0 || n["written"] != 0 || n["used"] != 0 || n["writing"] < 7 {
			t.Errorf("in a minute: %v", n)
		}
		w.seen[1].Written++
		w.active["used"] = time.Now() // what was written is counted later
		if n := w.during(t, 5*time.Second); n["written"] != 1 || n["used"] != 1 || n["idle"] != 0 {
			t.Errorf("after a change: %v", n)
		}
		if n := w.during(t, time.Minute); n["written"] != 0 || n["used"] > 1 {
			t.Errorf("after that: %v", n)
		}
	})
}

func TestWhatCannotBeMeasuredStaysDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(idle("db", "a"))
		w.during(t, time.Second)
		w.failing["db"] = true
		w.seen[0].Written++
		if n := w.during(t, 20*time.Second); n["db"] < 2 {
			t.Errorf("while it fails: %v", n)
		}
		w.failing["db"] = false
		if n := w.during(t, 20*time.Second); n["db"] != 1 {
			t.Errorf("afterwards: %v", n)
		}
	})
}

// soon is what the agent has of the 15 s within which a database that exceeds its quota is read-only.
const soon = 9 * time.Second

// One account has many databases with very many files, in all of which it writes. The others' are measured within the time that
// is promised, and its own are too, more rarely.
func TestAnAccountWithManyFilesHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []Sighting
		for i := range 50 {
			all = append(all, writing(fmt.Sprint("heavy", i), "heavy"))
		}
		for i := range 100 {
			all = append(all, writing(fmt.Sprint("light", i), fmt.Sprint("account", i%20)))
		}
		w := newWorld(all...)
		for i := range 50 {
			w.took[id.DatabaseID(fmt.Sprint("heavy", i))] = 10 * time.Second
		}
		for i := range 100 {
			w.took[id.DatabaseID(fmt.Sprint("light", i))] = 2 * time.Millisecond
		}
		w.during(t, 3*time.Hour) // all are measured for the first time
		n := w.during(t, 10*time.Minute)
		heavy := 0
		for db, times := range n {
			if db[0] == 'h' {
				heavy += times
			} else if w.gap[db] > soon {
				t.Errorf("%s was measured %d times, with pauses up to %s", db, times, w.gap[db])
			}
		}
		if heavy < 3 || heavy > 7 {
			t.Errorf("the account's were measured %d times", heavy)
		}
		for _, s := range all {
			if _, known := w.Size(s.ID); !known {
				t.Errorf("%s was never measured", s.ID)
			}
		}
	})
}

// So does one that takes minutes, not even databases of its own account.
func TestAHeavyDatabaseHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(writing("heavy", "a"), writing("light", "a"), writing("other", "b"))
		w.took["heavy"] = 4 * time.Minute
		w.during(t, 30*time.Second)
		n := w.during(t, 3*time.Hour)
		if n["heavy"] < 5 || w.gap["light"] > soon || w.gap["other"] > soon {
			t.Errorf("measured %v, with pauses up to %v", n, w.gap)
		}
	})
}

// A database that takes longer than it may has twice the time when that is tried again.
func TestADatabaseThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(writing("long", "a"))
		w.took["long"] = 4 * time.Minute
		w.during(t, 5*time.Minute)
		if _, known := w.Size("long"); known || w.Unmeasured() != 1 {
			t.Errorf("at first: it is known: %v, %d are not measured", known, w.Unmeasured())
		}
		w.during(t, 2*time.Hour)
		if _, known := w.Size("long"); !known || w.Unmeasured() != 0 {
			t.Errorf("afterwards: it is known: %v, %d are not measured", known, w.Unmeasured())
		}
		w.took["long"] = time.Hour
		n := w.during(t, 24*time.Hour)
		if w.Unmeasured() != 1 || n["long"] < 10 || n["long"] > 30 {
			t.Errorf("of one that takes an hour: %v, %d are not measured", n, w.Unmeasured())
		}
	})
}

func TestDatabasesWithoutAnAccountShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(writing("quick", ""))
		for i := range 4 {
			slow := writing(fmt.Sprint("slow", i), "")
			w.seen, w.took[slow.ID] = append(w.seen, slow), 900*time.Millisecond
		}
		w.during(t, 10*time.Minute)
		if w.gap["quick"] > 15*time.Second {
			t.Errorf("pauses up to %v", w.gap)
		}
	})
}

func TestAnswersComeInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2*command.UsesAtOnce + 7
		w := newWorld()
		for i := range many {
			w.seen = append(w.seen, idle(fmt.Sprint(i), fmt.Sprint(i)))
		}
		w.during(t, time.Second)
		got, position := map[id.DatabaseID]int64{}, command.StorageFromStart
		for parts, more := 0, true; more; parts++ {
			used, err := w.Use(t.Context(), command.StorageUse{After: position})
			next := command.StorageUse{After: used.Next}
			if err != nil || next.Check() != nil || len(used.Databases) > command.UsesAtOnce || parts > 3 {
				t.Fatalf("part %d: %d sizes, %q, %v", parts, len(used.Databases), used.Next, err)
			}
			for _, d := range used.Databases {
				got[d.DatabaseID] = d.Bytes
			}
			position, more = used.Next, used.More
		}
		if len(got) != many {
			t.Errorf("%d sizes", len(got))
		}
		w.seen[3].Written++
		w.during(t, 10*time.Second)
		for _, after := range []string{position, "OTHER.5"} {
			used, err := w.Use(t.Context(), command.StorageUse{After: after})
			changed := len(used.Databases) == 1 && used.Databases[0].DatabaseID == "3" && used.Databases[0].Bytes == many+1
			if err != nil || changed != (after == position) || used.More == (after == position) {
				t.Errorf("after %s: %d sizes, more %v, %v", after, len(used.Databases), used.More, err)
			}
		}
	})
}

func TestADatabaseThatIsGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(idle("one", "a"), idle("two", "a"))
		w.during(t, time.Second)
		w.seen = w.seen[:1]
		w.during(t, 5*time.Second)
		used, err := w.Use(t.Context(), command.StorageUse{After: command.StorageFromStart})
		if err != nil || len(used.Databases) != 1 || used.Databases[0].DatabaseID != "one" || len(w.resting) != 0 {
			t.Errorf("%+v, %v, %v", used, w.resting, err)
		}
	})
}
