package copies

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/core/backup"
)

// openAtPeer opens a file that passes at the operation's peer, and may still be written there: its data are asked for when they
// are restored, and what is known only at their end comes after them. Where the peer makes the file anew meanwhile, the error is
// a *peer.AwayError, and the copy is begun again.
func (x *Copies) openAtPeer(ctx context.Context, req Request) (*fileSet, error) {
	m, err := x.Peers.Begun(ctx, req.OperationID, req.Source.Filename)
	if err != nil {
		return nil, err
	}
	if m.DatabaseID != req.Source.DatabaseID {
		return nil, unlike(errors.New("its manifest is another database's"))
	}
	set := &fileSet{
		manifest: backup.StoredManifest{Manifest: m}, size: m.File.SizeBytes, passing: true,
		took: m.WrittenAt.Sub(m.CreatedAt), // of one that is not written yet, it is negative
	}
	set.data = &remote{ReadCloser: unopened, read: true, reopen: func() (io.ReadCloser, error) {
		data, _, err := x.Peers.Open(ctx, m, peer.File, math.MaxInt64)
		return data, err
	}}
	return set, nil
}

// completeFromPeer has the manifest and the sidecar of a set come whose data have come.
func (x *Copies) completeFromPeer(ctx context.Context, set *fileSet) error {
	src, _, err := x.Peers.Open(ctx, set.manifest.Manifest, peer.Manifest, backup.MaxManifestBytes)
	if err != nil {
		return err
	}
	defer src.Close()
	text, err := io.ReadAll(src)
	if err != nil {
		return err
	}
	if set.manifest, err = backup.ParseManifest(text); err != nil {
		return unlike(err)
	}
	schema, _, err := x.Peers.Open(ctx, set.manifest.Manifest, peer.Schema, set.manifest.Sidecar.SizeBytes)
	if err != nil {
		return err
	}
	defer schema.Close()
	if set.sidecar, err = x.Files.Aside(schema); err != nil {
		return err
	}
	return set.checkSidecar()
}
