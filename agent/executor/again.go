package executor

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// complaintPause is between two complaints about rounds that fail.
const complaintPause = time.Minute

// again runs rounds until ctx ends. A round returns the pause after it, which woken cuts short.
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

// wake cuts a pause short. The channel holds one, so a round that runs already is followed by another.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look
	}
}
