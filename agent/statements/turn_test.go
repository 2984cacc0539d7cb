package statements

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// However many ask, one is read at a time, for a quarter of the time at most. Who does not come to turn in time is told so.
func TestReadingRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, zap.NewNop())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answers := make(chan error, 100)
		reading, read := false, 0
		for range cap(answers) {
			go func() {
				answers <- s.inTurn(ctx, func() error {
					if reading {
						t.Error("two are read at a time")
					}
					reading = true
					time.Sleep(100 * time.Millisecond)
					reading, read = false, read+1
					return nil
				})
			}()
		}
		late := 0
		for range cap(answers) {
			if err := <-answers; errors.Is(err, context.DeadlineExceeded) {
				late++
			} else if err != nil {
				t.Error(err)
			}
		}
		if read < 24 || read > 26 || read+late != cap(answers) {
			t.Errorf("%d were read in 10 s, and %d came too late", read, late)
		}
		time.Sleep(time.Second) // the last rest
	})
}
