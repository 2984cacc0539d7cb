package pgdb

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/ports"
)

// A server is away when it has not answered twice in a row, the second time on a new connection: a host that has itself been
// stopped for a while finds its first question unanswered.
const (
	firstLook  = 2 * time.Second
	secondLook = time.Second
)

// errAway is what awaited work gets while the server is known to be away.
var errAway = fmt.Errorf("%w: it did not when it was last asked", ports.ErrUnavailable)

// answering lasts while the server answers, as far as Watch knows.
type answering struct {
	ctx context.Context
	end context.CancelCauseFunc
}

func newAnswering() *answering {
	ctx, end := context.WithCancelCause(context.Background())
	return &answering{ctx, end}
}

// Watch asks whether the metadata database answers, on a connection of its own, so that a busy pool says nothing about it. From
// when it does not until a later Watch finds that it does, awaited work is refused at once, and what waits is let go of. A server
// that refuses this connection, for instance because it has too many, answers. Calls must not overlap.
func (d *DB) Watch(ctx context.Context) error {
	err := d.look(ctx, firstLook)
	if err != nil && ctx.Err() == nil {
		err = d.look(ctx, secondLook)
	}
	away, answers := d.Away(), err == nil || refuses(err)
	switch {
	case ctx.Err() != nil:
	case !answers && !away:
		d.answers.Load().end(errAway)
	case answers && away:
		d.answers.Store(newAnswering())
	}
	return err
}

// Away reports whether the last Watch found that the metadata database does not answer.
func (d *DB) Away() bool { return d.answers.Load().ctx.Err() != nil }

func (d *DB) look(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return translate(ctx, d.watch.PingContext(ctx))
}

// refuses reports whether an error is the word of a server that works.
func refuses(err error) bool {
	ends := pq.As(err, pqerror.AdminShutdown, pqerror.CrashShutdown, pqerror.CannotConnectNow) != nil
	return pq.As(err) != nil && !ends
}

// bounded gives work its time: what is awaited has less, and none while the server is away. Who is done calls end.
func (d *DB) bounded(ctx context.Context) (_ context.Context, end context.CancelFunc, err error) {
	if !ports.IsAwaited(ctx) {
		if _, has := ctx.Deadline(); has {
			return ctx, func() {}, nil
		}
		ctx, end = context.WithTimeout(ctx, longest)
		return ctx, end, nil
	}
	answers := d.answers.Load()
	if answers.ctx.Err() != nil {
		return nil, nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	ctx, cut := context.WithCancelCause(ctx)
	stop := context.AfterFunc(answers.ctx, func() { cut(errAway) })
	return ctx, func() { stop(); cut(nil); cancel() }, nil
}
