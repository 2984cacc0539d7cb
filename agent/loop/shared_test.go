package loop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many ask, and however the looks end, one look follows another after the pause, which is longer after a slow one.
func TestManyWhoAskShareALook(t *testing.T) {
	failed := errors.New("no answer")
	const every, limit = 15 * time.Second, 2 * time.Second
	for _, c := range []struct {
		name  string
		takes time.Duration
		fails error
		asked time.Duration // somebody asks each time that this is over; 0: nobody does
		looks int           // within five minutes
	}{
		{"nobody asks", 0, nil, 0, 0},
		{"many ask", time.Millisecond, nil, 100 * time.Millisecond, 20},
		{"few ask", time.Millisecond, nil, time.Minute, 5},
		{"it fails at once", time.Millisecond, failed, 100 * time.Millisecond, 20},
		{"it is slow", 1900 * time.Millisecond, nil, 100 * time.Millisecond, 15},
		{"it does not end", time.Hour, nil, 100 * time.Millisecond, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				s := NewShared(every, limit, func(ctx context.Context) (int, error) {
					looks++
					if err := Wait(ctx, c.takes); err != nil {
						return 0, err
					}
					return looks, c.fails
				})
				var askers sync.WaitGroup
				for at := time.Duration(0); c.asked > 0 && at < 5*time.Minute; at += c.asked {
					askers.Go(func() { _, _ = s.Get(t.Context()) })
					time.Sleep(c.asked)
				}
				askers.Wait()
				if looks != c.looks {
					t.Errorf("%d looks, want %d", looks, c.looks)
				}
			})
		})
	}
}

// Who gives up leaves the look to the others; all hear what it found, and so does who asks a little later.
func TestWhoGivesUpDoesNotEndTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShared(15*time.Second, 2*time.Second, func(ctx context.Context) (int, error) { return 7, Wait(ctx, time.Second) })
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if n, err := s.Get(hasty); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		for range 2 {
			if n, err := s.Get(t.Context()); n != 7 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
	})
}
