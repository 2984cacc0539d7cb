package endless

import (
	"testing"
	"time"
)

var start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// at is a worker that does something in a task since a second.
func at(pid int, account string, d doing, task int, progress string) worker {
	return worker{
		pid: pid, started: start, begun: start.Add(time.Duration(task) * time.Second), account: account, doing: d, progress: progress,
	}
}

// ends looks once a second, and returns when somebody is to be ended for the first time; -1: never.
func (k *keeper) ends(from, seconds int, allBusy bool, seen func(second int) worker) (second int, e ending) {
	for s := from; s < from+seconds; s++ {
		if all := k.look([]worker{seen(s)}, allBusy, start.Add(time.Duration(s)*time.Second)); len(all) > 0 {
			return s, all[0]
		}
	}
	return -1, e
}

func TestWhoStandsTooLong(t *testing.T) {
	const long = 10_000
	for what, c := range map[string]struct {
		seen func(second int) worker
		want int
	}{
		"computes":                      {func(int) worker { return at(1, "a", computing, 0, "") }, 60},
		"computes in one phase of two":  {func(s int) worker { return at(1, "a", []doing{computing, working}[s%2], 0, "") }, 120},
		"computes in a thousand tables": {func(s int) worker { return at(1, "a", computing, s/10, "") }, 60},
		"cleans up":                     {func(int) worker { return at(1, "a", cleaning, 0, "") }, 60},
		"waits":                         {func(int) worker { return at(1, "a", waiting, 0, "5") }, 60},
		"waits here and there":          {func(s int) worker { return at(1, "a", waiting, 0, time.Duration(s/10).String()) }, -1},
		"waits in each of many tables":  {func(s int) worker { return at(1, "a", waiting, s/10, "") }, -1},
		"reads and writes":              {func(int) worker { return at(1, "a", working, 0, "5") }, -1},
		"is another worker each time": {func(s int) worker {
			w := at(1, "a", computing, 0, "")
			w.started = start.Add(time.Duration(s/10) * time.Second)
			return w
		}, -1},
	} {
		k := newKeeper(Bounds{})
		if got, e := k.ends(0, long, true, c.seen); got != c.want || e.whole {
			t.Errorf("who %s is ended after %d s (as a whole: %v), want %d", what, got, e.whole, c.want)
		}
	}
}

// Who does not heed that a task was canceled is ended, and so is who stands again in the same worker. The account's next workers
// have less time, but only while no worker is free; others have as much as before.
func TestWhoStandsAgain(t *testing.T) {
	computes := func(pid int, account string, task int) func(int) worker {
		return func(int) worker { return at(pid, account, computing, task, "") }
	}
	k := newKeeper(Bounds{})
	second, e := k.ends(0, 100, true, computes(1, "a", 0))
	k.done(e, start.Add(time.Duration(second)*time.Second))
	if got, e := k.ends(61, 100, true, computes(1, "a", 0)); got != 62 || !e.whole {
		t.Errorf("who does not heed it is ended at %d s (as a whole: %v)", got, e.whole)
	}
	for what, c := range map[string]struct {
		seen    func(int) worker
		allBusy bool
		want    int
		whole   bool
	}{
		"the same worker":              {computes(1, "a", 1), true, 5, true},
		"another one":                  {computes(2, "a", 0), true, 5, false},
		"another one, while some rest": {computes(2, "a", 0), false, 60, false},
		"another account":              {computes(2, "b", 0), true, 60, false},
	} {
		k := newKeeper(Bounds{})
		_, e := k.ends(0, 100, true, computes(1, "a", 0))
		k.done(e, start.Add(time.Minute))
		if got, e := k.ends(60, 100, c.allBusy, c.seen); got != 60+c.want || e.whole != c.whole {
			t.Errorf("%s is ended after %d s (as a whole: %v), want %d (%v)", what, got-60, e.whole, c.want, c.whole)
		}
	}
	k = newKeeper(Bounds{})
	_, e = k.ends(0, 100, true, computes(1, "a", 0))
	k.done(e, start.Add(time.Minute))
	if got, _ := k.ends(3661, 100, true, computes(2, "a", 0)); got != 3721 {
		t.Errorf("an hour later, another one is ended at %d s", got)
	}
}

// What was found to compute nothing is left alone to its end.
func TestWhoIsAcquitted(t *testing.T) {
	cleans := func(task int) func(int) worker {
		return func(int) worker { return at(1, "a", cleaning, task, "") }
	}
	k := newKeeper(Bounds{})
	_, e := k.ends(0, 100, true, cleans(0))
	k.acquit(e)
	if got, _ := k.ends(61, 10_000, true, cleans(0)); got != -1 {
		t.Errorf("it is ended at %d s", got)
	}
	if got, _ := k.ends(10_061, 100, true, cleans(1)); got == -1 {
		t.Error("nor is the next one ended")
	}
}

// An agent that was away has seen nothing meanwhile.
func TestTimeWithoutALookHardlyCounts(t *testing.T) {
	k := newKeeper(Bounds{})
	for _, s := range []int{0, 3600, 7200} {
		if all := k.look([]worker{at(1, "a", computing, 0, "")}, true, start.Add(time.Duration(s)*time.Second)); len(all) > 0 {
			t.Errorf("ended after %d s", s)
		}
	}
}
