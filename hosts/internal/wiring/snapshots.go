package wiring

import (
	"io"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/snapshots"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/ports"
)

// newSnapshots takes snapshots of the metadata at a URL. A command without a key ring can ask of which installation they are.
func newSnapshots(url string, box ports.SecretBox) *snapshots.Snapshots {
	ring, has := box.(snapshots.Ring)
	if !has {
		ring = noRing{box}
	}
	return snapshots.New(postgres.NewSnapshots(postgres.Config{URL: url}), ring, version.Version(), CheckDump)
}

// noRing is a box that has no keys.
type noRing struct{ ports.SecretBox }

func (noRing) SealedBy([]byte) keyring.Fingerprint { return "" }

// CheckDump reads what a snapshot has to its end.
func CheckDump(r io.Reader) error {
	_, err := postgres.CheckDump(r)
	return err
}
