package conformance

import (
	"sync"
	"testing"
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
