package store

import (
	"sync"
	"testing"

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

// takenOnce has many take from a queue of n, on two hosts, until it is empty, and fails the test unless everything was taken
// once. take returns the IDs of what it took; none where nothing is left.
func (w *world) takenOnce(what string, n int, take func(host ports.Store, worker int) ([]string, error)) {
	w.Helper()
	const workers = 8
	hosts := []ports.Store{w.Store, w.another(w.T).Store}
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
