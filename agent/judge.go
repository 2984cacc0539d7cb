package agent

import "context"

// judged waits until a look at what the agent works beside ends in a judgement, and returns that if it is a refusal.
func (a *Agent) judged(
	ctx context.Context, what string, look func(context.Context) error, isRefusal func(error) bool,
) (refusal error) {
	_ = a.untilDone(ctx, what, func(ctx context.Context) error {
		err := look(ctx)
		if isRefusal(err) {
			refusal, err = err, nil
		}
		return err
	})
	return refusal
}

// onceInCharge begins a watch when the agent is in charge: what it worked beside at its start may be replaced.
func (a *Agent) onceInCharge(ctx context.Context, watch func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.started:
		return watch(ctx)
	}
}
