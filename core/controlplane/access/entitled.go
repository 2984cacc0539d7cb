package access

import (
	"context"
	"io"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// A transfer may take hours. A caller who loses the key or the membership meanwhile moves no more of it after entitledFor and
// the next chunk. Looking may take no longer than lookTime of the transfer.
const (
	entitledFor = 5 * time.Second
	lookTime    = time.Second
)

// entitled is the content of a transfer for as long as the caller may move it. An outage of the store does not end it.
type entitled struct {
	io.Reader
	clock func() time.Time
	holds func() error
	until time.Time // when to look again
}

// Seeing returns body as it can be read for as long as the caller may see the database: then reading it ends with
// DATABASE_NOT_FOUND or ACCOUNT_SUSPENDED.
func (r Reached) Seeing(ctx context.Context, p *base.Base, body io.Reader) io.Reader {
	return r.entitling(ctx, p, body, func(ctx context.Context, tx ports.Tx) error {
		_, err := r.again(ctx, tx, r.record.ID)
		return base.NotFound(err, base.ErrDatabaseNotFound())
	})
}

// Keeping is Seeing for as long as the caller has the same standing on the database.
func (r Reached) Keeping(ctx context.Context, p *base.Base, body io.Reader) io.Reader {
	return r.entitling(ctx, p, body, r.StillHolds)
}

func (r Reached) entitling(
	ctx context.Context, p *base.Base, body io.Reader, holds func(context.Context, ports.Tx) error,
) io.Reader {
	clock := p.Clock.Now
	return &entitled{Reader: body, clock: clock, until: clock().Add(entitledFor), holds: func() error {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		return p.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
			if err := holds(ctx, tx); err != nil {
				return err
			}
			return r.caller.holds(ctx, tx, p.Clock)
		})
	}}
}

// holds returns DATABASE_NOT_FOUND if the session has ended, or the key has expired or may no longer be used from the client's
// address.
func (c Caller) holds(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	holds := c.keyHolds
	if c.IsPerson() {
		holds = c.sessionHolds
	}
	return base.NotFound(holds(ctx, tx, clock), base.ErrDatabaseNotFound())
}

func (c Caller) keyHolds(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	key, err := tx.Keys().Get(ctx, c.Key.ID)
	if err == nil && (key.Expired(clock.Now()) || !key.Networks.Contains(c.Client)) {
		err = ports.ErrNoRow
	}
	return err
}

// Read implements io.Reader.
func (b *entitled) Read(p []byte) (int, error) {
	if now := b.clock(); !now.Before(b.until) {
		if err := b.holds(); fault.Has(err, fault.DatabaseNotFound) || fault.Has(err, fault.AccountSuspended) {
			return 0, err
		}
		b.until = b.clock().Add(entitledFor)
	}
	return b.Reader.Read(p)
}
