package backups

import (
	"context"
	"io"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
)

// A download may take hours. Who loses the key, or the membership, meanwhile gets no more of it after entitledFor and the next
// chunk. Looking may take no longer than lookTime of the download.
const (
	entitledFor = 5 * time.Second
	lookTime    = time.Second
)

// entitledBody is the content of a file for as long as the caller may read it. An outage of the store takes it from nobody.
type entitledBody struct {
	io.ReadCloser
	clock func() time.Time
	holds func() error
	until time.Time // when to look again
}

func (b *Backups) entitled(ctx context.Context, r access.Reached, body io.ReadCloser) io.ReadCloser {
	clock := b.plane.Clock.Now
	return &entitledBody{ReadCloser: body, clock: clock, until: clock().Add(entitledFor), holds: func() error {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		return r.Holds(ctx, b.plane)
	}}
}

// Read implements io.Reader.
func (b *entitledBody) Read(p []byte) (int, error) {
	if now := b.clock(); !now.Before(b.until) {
		if err := b.holds(); fault.Has(err, fault.DatabaseNotFound) {
			return 0, err
		}
		b.until = b.clock().Add(entitledFor)
	}
	return b.ReadCloser.Read(p)
}
