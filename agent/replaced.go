package agent

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/pooler"
)

// giveWayTime bounds the look at the archive before an agent carries out commands, and the end of what customers do.
const giveWayTime = 10 * time.Second

// confirmArchive returns an archive.ErrReplaced where another server has taken this one's place. An archive that is away says
// nothing; it is asked again.
func (a *Agent) confirmArchive(ctx context.Context) error {
	if a.archive == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, giveWayTime)
	defer cancel()
	if err := a.archive.Confirm(limited); errors.Is(err, archive.ErrReplaced) {
		return a.giveWay(ctx, err)
	}
	return nil
}

// untilReplaced is do with a context that ends when another server has taken this one's place; then it returns that.
func (a *Agent) untilReplaced(ctx context.Context, do func(context.Context) error) error {
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case err := <-a.replaced:
			end(err)
		case <-working.Done():
		}
	}()
	err := do(working)
	if replaced := context.Cause(working); errors.Is(replaced, archive.ErrReplaced) {
		a.inCharge.Store(false)
		return a.giveWay(ctx, replaced)
	}
	return err
}

// giveWay shuts customers out, who would write what nobody has later.
func (a *Agent) giveWay(ctx context.Context, replaced error) error {
	ctx, cancel := context.WithTimeout(ctx, giveWayTime)
	defer cancel()
	err := a.pooler.Apply(ctx, pooler.State{Settings: a.config.Pooler})
	closed, failed := a.pooler.Expel(ctx, pooler.Everyone())
	a.log.Error("customers are shut out here: "+replaced.Error(), zap.Int("clients", closed), zap.Error(errors.Join(err, failed)))
	return replaced
}
