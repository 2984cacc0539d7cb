package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
)

// KeyRing is a SecretBox whose keys are known by their fingerprints.
type KeyRing interface {
	SecretBox
	// Keys returns what the ring holds now.
	Keys() (keyring.Ring, error)
	// SealWith has Seal use a key of the ring for keyring.Trust, and refuse after that until it is called again. Where the ring does
	// not have the key, that is an error, and Seal refuses from now on.
	SealWith(key keyring.Fingerprint) error
	// SealedBy returns the key of the ring that a value was sealed with; empty where the ring does not have it.
	SealedBy(sealed []byte) keyring.Fingerprint
}

// KeyRings is what the store knows of the ring that its encrypted values need, and of the hosts that have it.
type KeyRings interface {
	// Lock makes the transactions that decide over the ring take turns.
	Lock(ctx context.Context) error
	// Keys lists the known keys in the order of their fingerprints.
	Keys(ctx context.Context) (keyring.Keys, error)
	// Put adds a key, or replaces what is known of it. At most one is staged, and one the primary, at any time.
	Put(ctx context.Context, k keyring.Key) error
	// Hosts lists the hosts by name.
	Hosts(ctx context.Context) ([]keyring.Host, error)
	// Report adds a host, or replaces what it said before.
	Report(ctx context.Context, h keyring.Host) error
	// Forget removes a host, if it is there.
	Forget(ctx context.Context, h id.RingHostID) error
	// ForgetBefore removes every host that last reported before a time.
	ForgetBefore(ctx context.Context, seen time.Time) error
}
