package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

func TestAnAccountHasHalfOfTheSlots(t *testing.T) {
	for slots, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 8: 4} {
		s, held := NewSlots(slots), 0
		for range 10 {
			if s.Ask("ada").Held() {
				held++
			}
		}
		if held != want {
			t.Errorf("of %d slots one account holds %d, want %d", slots, held, want)
		}
	}
}

func TestWhoLeavesTheQueueIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		first, second, third := s.Ask("ada"), s.Ask("bob"), s.Ask("cyd")
		canceled, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			err := second.Wait(canceled)
			second.Leave()
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who is canceled hears %v", err)
		}
		if running, waiting := s.Count(); running != 1 || waiting != 1 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
		first.Leave()
		if err := third.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		third.Leave()
		if running, waiting := s.Count(); running != 0 || waiting != 0 {
			t.Errorf("%d run and %d wait after all have left", running, waiting)
		}
	})
}

func TestAccountsTakeTurns(t *testing.T) {
	s := NewSlots(2)
	running := []*slot.Request{s.Ask("ada"), s.Ask("bob")}
	waiting := map[*slot.Request]id.AccountID{}
	for _, a := range []id.AccountID{"ada", "ada", "ada", "cyd", "bob"} {
		waiting[s.Ask(a)] = a
	}
	var order []id.AccountID
	for len(waiting) > 0 {
		running[0].Leave()
		running = running[1:]
		for w, a := range waiting {
			if w.Held() {
				order, running = append(order, a), append(running, w)
				delete(waiting, w)
			}
		}
	}
	if len(order) != 5 || order[0] != "cyd" {
		t.Errorf("the order is %v", order)
	}
}
