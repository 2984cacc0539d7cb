package peer

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Adopt takes over a backup of a peer, whose manifest has that SHA-256, as it lies there: it is sealed with the same key. One
// that is here already is not asked for. The errors are those of Store.Adopt; an *AwayError or an *UnlikeError is in them where
// the peer is the reason.
func (k *Known) Adopt(ctx context.Context, files *store.Store, q command.AdoptBackup) error {
	k.Note(q.Operation, q.Peer)
	defer k.Forget(q.Operation)
	from := &backups{known: k, op: q.Operation, db: q.DatabaseID, most: 2*q.SizeBytes + backup.MaxManifestBytes}
	return files.Adopt(ctx, from, q.DatabaseID, q.Filename, q.ManifestSHA256)
}

// backups are the blobs of a peer's backups of one database.
type backups struct {
	known *Known
	op    id.OperationID
	db    id.DatabaseID
	most  int64 // bytes of a blob
}

// Open implements store.Source.
func (b *backups) Open(ctx context.Context, name string) (io.ReadCloser, blob.Info, error) {
	path := backupPath(b.op, strings.TrimPrefix(name, string(b.db)+"/"))
	f := &fetched{known: b.known, ctx: ctx, op: b.op, path: path, most: b.most}
	file, size, err := f.open()
	if errors.Is(err, errNotThere) {
		err = blob.ErrNotFound
	}
	return file, blob.Info{Name: name, Bytes: size}, err
}
