package copies

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// openAtPeer opens a file that passes at the operation's peer, and may still be written there: its data are asked for when they
// are restored, and what is known only at their end comes after them. Where the peer makes the file anew meanwhile, the error is
// a *peer.AwayError, and the copy is begun again.
func (x *Copies) openAtPeer(ctx context.Context, req Request) (*fileSet, error) {
	begun, err := x.Peers.Begun(ctx, req.OperationID, req.Source.Filename)
	if err != nil {
		return nil, err
	}
	m := begun.Manifest
	if m.DatabaseID != req.Source.DatabaseID {
		return nil, unlike(errors.New("its manifest is another database's"))
	}
	set := &fileSet{
		manifest: backup.StoredManifest{Manifest: m}, size: m.File.SizeBytes, database: begun.DatabaseBytes,
		passing: true, took: m.WrittenAt.Sub(m.CreatedAt), // of one that is not written yet, it is negative
	}
	set.data = &remote{ReadCloser: unopened, read: true, reopen: func() (io.ReadCloser, error) {
		data, _, err := x.Peers.OpenData(ctx, req.OperationID, m.Filename, m.CreatedAt)
		return data, err
	}}
	return set, nil
}

// completeFromPeer has the manifest and the sidecar of a set come whose data have come.
func (x *Copies) completeFromPeer(ctx context.Context, op id.OperationID, set *fileSet) error {
	name := set.manifest.Filename
	part := func(part peer.Part, most int64) (io.ReadCloser, error) {
		src, _, err := x.Peers.OpenPassing(ctx, op, name, part, most)
		return src, err
	}
	src, err := part(peer.Manifest, backup.MaxManifestBytes)
	if err != nil {
		return err
	}
	defer src.Close()
	text, err := io.ReadAll(src)
	if err != nil {
		return err
	}
	whole, err := backup.ParseManifest(text)
	switch {
	case err != nil:
		return unlike(err)
	case !whole.CreatedAt.Equal(set.manifest.CreatedAt):
		return &peer.AwayError{Cause: errors.New("it made the file anew")}
	}
	set.manifest = whole
	schema, err := part(peer.Schema, whole.Sidecar.SizeBytes)
	if err != nil {
		return err
	}
	defer schema.Close()
	if set.sidecar, err = x.Files.Aside(schema); err != nil {
		return err
	}
	return set.checkSidecar()
}
