package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
)

const stageFetching = "fetching"

// fetched reports whether the file is made by a peer.
func (r Request) fetched() bool { return r.ManifestSHA256 != "" }

// roomToFetch is the room for a file that comes, with its schema and its manifest.
func roomToFetch(req Request) diskroom.Need {
	return diskroom.Need{Purpose: diskroom.Dump, Bytes: req.Size + req.Size/8 + 1<<20}
}

// fetch has the set of files come from the peer, sealed anew with the key of the database that it is for, and commits it. When it
// fails, nothing of it is left.
func (x *Backups) fetch(ctx context.Context, req Request, tell jobs.Tell) (result Result, err error) {
	made, err := x.fetchedSpool(ctx, req, tell)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, made.draft.End(context.WithoutCancel(ctx))) }()
	x.Crash("fetch.come")
	return Result{Manifest: made.manifest}, x.commit(ctx, made.draft, req, tell)
}

func (x *Backups) fetchedSpool(ctx context.Context, req Request, tell jobs.Tell) (made spool, err error) {
	ctx, cancel := jobs.Within(ctx, "the way of the file from the other server", x.Limits.Dump)
	defer cancel()
	if made.draft, err = x.files(req).Begin(ctx, req.DatabaseID, req.Filename); err != nil {
		return made, err
	}
	defer func() {
		if late := jobs.Overlong(ctx); err != nil && late != nil {
			err = errors.Join(late, err)
		}
		if err != nil {
			err = errors.Join(err, made.draft.End(context.WithoutCancel(ctx)))
		}
	}()
	text, err := x.fetchManifest(ctx, req)
	if err != nil {
		return made, err
	}
	if made.manifest, err = backup.ParseManifest(text); err != nil {
		return made, err
	}
	if m := made.manifest; m.OperationID != req.OperationID || m.Filename != req.Filename || m.File.SizeBytes != req.Size {
		return made, &peer.UnlikeError{What: "gives the manifest of another file"}
	}
	schema, err := made.draft.Sidecar()
	if err == nil {
		err = x.fetchPart(ctx, req, peer.Schema, made.manifest.Sidecar, schema, nil)
	}
	if err != nil {
		return made, err
	}
	x.Crash("fetch.begun")
	data, err := made.draft.Data()
	if err == nil {
		err = x.fetchPart(ctx, req, peer.File, made.manifest.File, data, jobs.Share(tell, stageFetching, 0, almostFetched))
	}
	if err != nil {
		return made, err
	}
	return made, made.draft.Take(text)
}

// almostFetched is the progress of a file that is here and not yet stored.
const almostFetched = 99

func (x *Backups) fetchManifest(ctx context.Context, req Request) ([]byte, error) {
	src, _, err := x.Peers.OpenPassing(ctx, req.OperationID, req.Filename, peer.Manifest, backup.MaxManifestBytes)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	text, err := io.ReadAll(src)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != req.ManifestSHA256 {
		return nil, &peer.UnlikeError{What: "gives the manifest of another file"}
	}
	return text, nil
}

// fetchPart has one file come, which is the one that the manifest names.
func (x *Backups) fetchPart(
	ctx context.Context, req Request, part peer.Part, want backup.FileDigest, to *store.File, tell jobs.Part,
) error {
	defer to.Close() //nolint:errcheck // after Finish it does nothing; before it, the file is discarded
	src, size, err := x.Peers.OpenPassing(ctx, req.OperationID, req.Filename, part, want.SizeBytes)
	if err != nil {
		return err
	}
	defer src.Close()
	if tell == nil {
		tell = func(int64, int64) {}
	}
	counted := &counting{Reader: src, tell: func(n int64) { tell(n, size) }}
	if _, err := io.Copy(to, counted); err != nil {
		return err
	}
	got, err := to.Finish()
	if err != nil {
		return err
	}
	if got.SizeBytes != want.SizeBytes || got.SHA256 != want.SHA256 {
		return &peer.UnlikeError{What: "gives a file that is not the one of its manifest"}
	}
	return nil
}

// counting tells how many bytes have come.
type counting struct {
	io.Reader
	n    int64
	tell func(int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.tell(c.n)
	return n, err
}
