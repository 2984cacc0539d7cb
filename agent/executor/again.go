package executor

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// complaintPause is the minimum time between two log lines about failing rounds.
const complaintPause = time.Minute

// again runs rounds until ctx ends. A round returns the pause after it; woken ends the pause early.
func (x *Executor) again(
	ctx context.Context, woken <-chan struct{}, complaint string, round func(context.Context) (time.Duration, error),
) {
	var complained time.Time
	for ctx.Err() == nil {
		pause, err := round(ctx)
		if err != nil && ctx.Err() == nil && time.Since(complained) > complaintPause {
			complained = time.Now()
			x.log.Warn(complaint, zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-time.After(pause):
		}
	}
}

// wake ends a pause early. The channel holds one signal, so a round that is already running is followed by another.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look
	}
}
