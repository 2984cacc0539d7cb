package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/ports"
)

// together runs fn n times at once, all from the same moment, and waits for them.
func together(t *testing.T, n int, fn func(i int)) {
	t.Helper()
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	running.Wait()
}

// stores are those of two hosts.
func (w *world) stores() []ports.Store {
	if w.other == nil {
		w.other = w.another(w.T).Store
	}
	return []ports.Store{w.Store, w.other}
}

// atOnce runs n transactions at once, on two hosts in turn, and returns their errors.
func (w *world) atOnce(n int, of func(i int) transaction) []error {
	w.Helper()
	hosts, errs := w.stores(), make([]error, n)
	together(w.T, n, func(i int) { errs[i] = hosts[i%len(hosts)].Update(w.Context(), of(i)) })
	return errs
}

// race is how many of n transactions at once succeed. The others fail like lost; where that is nil, none may.
func (w *world) race(n int, lost error, of func(i int) transaction) (won int) {
	w.Helper()
	for i, err := range w.atOnce(n, of) {
		switch {
		case err == nil:
			won++
		case lost == nil || !sameError(err, lost):
			w.Errorf("transaction %d of %d: %v", i, n, err)
		}
	}
	return won
}

// takenOnce has many take from a queue of n, on two hosts, until it is empty, and fails the test unless everything was taken
// once. take returns the IDs of what it took; none where nothing is left.
func (w *world) takenOnce(what string, n int, take func(host ports.Store, worker int) ([]string, error)) {
	w.Helper()
	const workers = 8
	hosts := w.stores()
	var mu sync.Mutex
	times := map[string]int{}
	together(w.T, workers, func(i int) {
		for {
			taken, err := take(hosts[i%len(hosts)], i)
			if err != nil {
				w.Error(err)
				return
			}
			if len(taken) == 0 {
				return
			}
			mu.Lock()
			for _, one := range taken {
				times[one]++
			}
			mu.Unlock()
		}
	})
	w.equal(what+" that were taken", len(times), n)
	for one, n := range times {
		if n != 1 {
			w.Errorf("%s was taken %d times", one, n)
		}
	}
}

// claimedOnce has many claim from a queue that may have so many of a group under way at most, and makes an attempt at each until
// n were claimed; it fails the test where one was claimed twice. claim returns what it claimed, of which group that is, and what
// saves the attempt.
func (w *world) claimedOnce(
	n, most int, claim func(host ports.Store, owner string) (one, group string, save transaction, err error),
) {
	w.Helper()
	hosts := w.stores()
	var mu sync.Mutex
	times, underWay := map[string]int{}, map[string]int{}
	count := func(one, group string, by int) (left bool) {
		mu.Lock()
		defer mu.Unlock()
		if one != "" {
			times[one] += max(by, 0)
			if underWay[group] += by; underWay[group] > most {
				w.Errorf("%d of one are under way", underWay[group])
			}
		}
		return len(times) < n
	}
	together(w.T, 8, func(i int) {
		for count("", "", 0) {
			one, group, save, err := claim(hosts[i%len(hosts)], fmt.Sprint("dispatcher-", i))
			if errors.Is(err, ports.ErrNoRow) {
				continue // another is in the way
			}
			if err != nil {
				w.Error(err)
				return
			}
			count(one, group, 1)
			time.Sleep(time.Millisecond) // the attempt
			count(one, group, -1)        // before it is saved: a claim that follows may be quicker than this dispatcher
			if err := hosts[i%len(hosts)].Update(w.Context(), save); err != nil {
				w.Error(err)
			}
		}
	})
	for one, n := range times {
		if n != 1 {
			w.Errorf("%s was claimed %d times", one, n)
		}
	}
}

// fenced has n save what each claimed before, all at once, and fails the test unless the last one alone succeeds.
func (w *world) fenced(n int, save func(i int) transaction) {
	w.Helper()
	for i, err := range w.atOnce(n, save) {
		if last := i == n-1; last && err != nil || !last && !errors.Is(err, ports.ErrLeaseLost) {
			w.Errorf("the write under claim %d of %d: %v", i+1, n, err)
		}
	}
}
