// Package loop repeats work of the agent that has no end.
package loop

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Run runs rounds until ctx ends. A round returns the pause after it; woken ends the pause early. Rounds that fail are complained
// of once in a while.
func Run(
	ctx context.Context, log *zap.Logger, woken <-chan struct{}, complaint string,
	round func(context.Context) (pause time.Duration, err error),
) {
	var seldom Seldom
	for ctx.Err() == nil {
		pause, err := round(ctx)
		if err != nil && ctx.Err() == nil {
			seldom.Warn(log, complaint, complaint, zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-time.After(pause):
		}
	}
}

// Wake ends a pause early. The channel holds one signal, so a round that is already running is followed by another.
func Wake(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default: // it will look
	}
}

// Wait returns after a pause, or with the error of ctx when that ends before.
func Wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// Persist does something even where ctx has ended, but then for no longer than the limit.
func Persist(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if err := do(ctx); ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return do(ctx)
}
