package store

import (
	"testing"
	"time"
)

// Notifier is the suite of ports.Notifier.
func Notifier(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"everybody who waits is woken by a commit", commitWakes},
		{"who has stopped does not block the others", stoppedDoesNotBlock},
	})
}

// wakeWithin is long enough for a listener that has just been started to connect.
const wakeWithin = 5 * time.Second

func commitWakes(w *world) {
	other := w.another(w.T)
	here, stopHere := w.Notifier.Wake()
	defer stopHere()
	also, stopAlso := w.Notifier.Wake()
	defer stopAlso()
	there, stopThere := other.Notifier.Wake()
	defer stopThere()
	// A listener may miss what is committed before it is connected, so work is added until each has been woken once.
	for i, c := range []<-chan struct{}{here, also, there} {
		if !wokenBy(c, func(n int) { w.addWork(w.addDatabase(numbered(100*i + n)).ID) }) {
			w.Errorf("waiter %d was not woken", i+1)
		}
	}
}

// wokenBy repeats act until c receives.
func wokenBy(c <-chan struct{}, act func(n int)) bool {
	deadline := time.After(wakeWithin)
	for n := 0; ; n++ {
		act(n)
		select {
		case <-c:
			return true
		case <-deadline:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func stoppedDoesNotBlock(w *world) {
	stopped, stop := w.Notifier.Wake()
	c, stopLast := w.Notifier.Wake()
	defer stopLast()
	stop()
	stop()
	if !wokenBy(c, func(n int) { w.addWork(w.addDatabase(numbered(n)).ID) }) {
		w.Error("a waiter was not woken after another had stopped")
	}
	select {
	case <-stopped:
		w.Error("a waiter was woken after it had stopped")
	default:
	}
}
