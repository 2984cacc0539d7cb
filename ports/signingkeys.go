package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
)

// SigningKeys keeps the keys that sign restore certificates, at most one of which signs.
type SigningKeys interface {
	// Add stores a key that signs. VALIDATION_ERROR on "key" while another one does.
	Add(ctx context.Context, k certificate.Key) error
	// Current returns the key that signs; ErrNoRow where there is none.
	Current(ctx context.Context) (certificate.Key, error)
	// Retire ends the key's signing and removes its private part. ErrNoRow where it does not sign: of two who retire it at the same
	// time, one does.
	Retire(ctx context.Context, k id.CertificateKeyID, now time.Time) error
	// List returns every key that ever signed, newest first.
	List(ctx context.Context, p Page) ([]certificate.Key, error)
}
