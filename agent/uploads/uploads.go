// Package uploads takes in the dumps that customers send, chunk by chunk, and keeps room for them.
package uploads

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

// An upload is a row of ledger.reservation, which says how large it will be and until when it is kept, and a file, which says how
// far it is. A file without a row is nobody's: the sweep removes it, unless an operation loads it. A row without a file keeps
// room until its time.

// Uploads are those of all databases of a server. They are safe for concurrent use.
type Uploads struct {
	files    *store.Store
	room     Room
	log      *zap.Logger
	arrivals arrivals
	// Crash is called at each of CrashPoints, so that a test can end the process there.
	Crash func(point string)
}

// Room keeps room for uploads on the disk of the backup files.
type Room interface {
	// Keep reserves room without waiting for it; BACKUP_STORAGE_FULL where others leave too little.
	Keep(ctx context.Context, k diskroom.Kept) error
	Release(ctx context.Context, of diskroom.Claimant) error
	// Ledger is the database that has what is reserved.
	Ledger() (*sql.DB, error)
}

// New returns the uploads whose files are in the store.
func New(files *store.Store, room Room, log *zap.Logger) *Uploads {
	return &Uploads{files: files, room: room, log: log, Crash: func(string) {}}
}

// countTime bounds the note of how far an upload is, for which the end of a chunk waits.
const countTime = 5 * time.Second

// arrivals are the chunks that are coming, at most one of an upload.
type arrivals struct {
	turns locks.Locks // "made" and "sent" uploads, by their ID: who makes or removes the file, and who appends to it

	mu     sync.Mutex
	coming map[id.UploadID]func() // breaks a chunk off
}

// chunksAtOnce bounds the chunks that come at a time, of all customers together and from all API hosts: each holds a file and a
// buffer. No account has more than upload.MostOpen of them, however slow it sends: it takes eight accounts to keep others out.
const chunksAtOnce = 8 * upload.MostOpen

var errManyChunks = command.Refuse(command.ReasonCrowded, "too many uploads come at a time; send the chunk again")

// chunkPatience is how long a chunk waits for its turn: the sweep looks at uploads too, and a chunk that broke off may not have
// ended yet.
const chunkPatience = time.Second

// begin claims an upload for a chunk, which stop breaks off.
func (a *arrivals) begin(ctx context.Context, upload id.UploadID, stop func()) (end func(), err error) {
	limited, cancel := context.WithTimeout(ctx, chunkPatience)
	defer cancel()
	done, err := a.turns.Take(limited, "sent "+string(upload))
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, command.Refuse(command.ReasonBusy, "another chunk of the upload is coming")
	case err != nil:
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.coming) >= chunksAtOnce {
		done()
		return nil, errManyChunks
	}
	if a.coming == nil {
		a.coming = map[id.UploadID]func(){}
	}
	a.coming[upload] = stop
	return func() {
		a.mu.Lock()
		delete(a.coming, upload)
		a.mu.Unlock()
		done()
	}, nil
}

// stop breaks off the chunk that is coming, if one is, and waits for its end.
func (a *arrivals) stop(ctx context.Context, upload id.UploadID) (done func(), err error) {
	a.mu.Lock()
	if stop := a.coming[upload]; stop != nil {
		stop()
	}
	a.mu.Unlock()
	return a.turns.Take(ctx, "sent "+string(upload))
}

func claimantOf(upload id.UploadID) diskroom.Claimant { return diskroom.Claimant(upload) }

// Open keeps room for an upload until its time, and makes its file; see command.OpenUpload.
func (x *Uploads) Open(ctx context.Context, q command.OpenUpload) (got command.Uploaded, err error) {
	done, err := x.arrivals.turns.Take(ctx, "made "+string(q.UploadID))
	if err != nil {
		return got, err
	}
	defer done()
	switch size, err := x.size(ctx, q.UploadID); {
	case err == nil && size != q.SizeBytes:
		return got, command.Refuse(command.ReasonConflict, "the upload has another size")
	case err != nil && !errors.Is(err, errNone):
		return got, err
	}
	kept := diskroom.Kept{Claimant: claimantOf(q.UploadID), Purpose: diskroom.Upload, Bytes: q.SizeBytes, Until: q.ExpiresAt}
	if err := x.room.Keep(ctx, kept); err != nil {
		return got, noRoom(err)
	}
	x.Crash("upload.kept")
	got.ReceivedBytes, err = x.files.CreateUpload(store.Upload{Database: q.DatabaseID, ID: q.UploadID})
	x.Crash("upload.made")
	if err == nil && got.ReceivedBytes > 0 {
		err = x.count(ctx, q.UploadID, got.ReceivedBytes)
	}
	return got, noRoom(err)
}

// CrashPoints names the moments at which tests crash an upload, in their order.
var CrashPoints = []string{"upload.kept", "upload.made", "upload.appended", "upload.released"}

// Ask tells how far an upload is; see command.AskUpload.
func (x *Uploads) Ask(ctx context.Context, q command.AskUpload) (got command.Uploaded, err error) {
	if _, err := x.size(ctx, q.UploadID); err != nil {
		return got, err
	}
	got.ReceivedBytes, err = x.files.UploadLength(store.Upload{Database: q.DatabaseID, ID: q.UploadID})
	return got, err
}

func noRoom(err error) error {
	if fault.Has(err, fault.BackupStorageFull) {
		return fault.Wrap(err, fault.BackupStorageFull, "the server has no room for the upload")
	}
	return err
}

var errNone = command.Refuse(command.ReasonNotFound, "there is no such upload, or it has expired")

// size is how large an upload will be.
func (x *Uploads) size(ctx context.Context, upload id.UploadID) (int64, error) {
	db, err := x.room.Ledger()
	if err != nil {
		return 0, err
	}
	return Size(ctx, db, upload)
}

// Size is how large an upload will be that is kept, as the ledger has it.
func Size(ctx context.Context, ledger *sql.DB, upload id.UploadID) (size int64, err error) {
	err = ledger.QueryRowContext(ctx, `SELECT bytes FROM ledger.reservation
		WHERE claimant = $1 AND purpose = $2 AND kept_until > clock_timestamp()`,
		string(upload), string(diskroom.Upload)).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errNone
	}
	return size, err
}

// count notes how far an upload is: so much is missing on the disk already.
func (x *Uploads) count(ctx context.Context, upload id.UploadID, received int64) error {
	db, err := x.room.Ledger()
	if err == nil {
		_, err = db.ExecContext(ctx, `UPDATE ledger.reservation SET used = $3 WHERE claimant = $1 AND purpose = $2`,
			string(upload), string(diskroom.Upload), received)
	}
	return err
}

// Receive appends a chunk of so many bytes to an upload; see command.Chunk. Closing the body breaks off a read of it.
func (x *Uploads) Receive(
	ctx context.Context, q command.Chunk, size int64, body io.ReadCloser,
) (got command.Uploaded, err error) {
	broken := make(chan struct{})
	stop := sync.OnceFunc(func() {
		close(broken)
		_ = body.Close() // the read ends, that is all
	})
	end, err := x.arrivals.begin(ctx, q.UploadID, stop)
	if err != nil {
		return got, err
	}
	defer end()
	whole, err := x.size(ctx, q.UploadID)
	if err != nil {
		return got, err
	}
	u := store.Upload{Database: q.DatabaseID, ID: q.UploadID}
	got.ReceivedBytes, err = x.files.UploadLength(u)
	switch {
	case err != nil:
		return got, err
	case got.ReceivedBytes != q.Offset:
		return got, command.Refuse(command.ReasonConflict, "the upload has %d bytes", got.ReceivedBytes)
	case size < 1 || size > whole-q.Offset:
		return got, command.Refuse(command.ReasonInvalid, "the chunk goes beyond the upload's %d bytes", whole)
	}
	got.ReceivedBytes, err = x.files.AppendUpload(u, q.Offset, io.LimitReader(body, size))
	x.Crash("upload.appended")
	select {
	case <-broken:
		return got, errNone
	default:
	}
	counted, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	if failed := x.count(counted, q.UploadID, got.ReceivedBytes); failed != nil { // it is looked at again
		x.log.Warn("an upload was not counted", zap.String("uploadId", string(q.UploadID)),
			zap.String("databaseId", string(q.DatabaseID)), zap.Error(failed))
	}
	return got, noRoom(err)
}

// Drop removes an upload and gives its room back; see command.DropUpload.
func (x *Uploads) Drop(ctx context.Context, q command.DropUpload) (none command.None, err error) {
	made, err := x.arrivals.turns.Take(ctx, "made "+string(q.UploadID))
	if err != nil {
		return none, err
	}
	defer made()
	if err := x.room.Release(ctx, claimantOf(q.UploadID)); err != nil { // no chunk begins any more
		return none, err
	}
	x.Crash("upload.released")
	sent, err := x.arrivals.stop(ctx, q.UploadID)
	if err != nil {
		return none, err
	}
	defer sent()
	return none, x.files.DeleteUpload(store.Upload{Database: q.DatabaseID, ID: q.UploadID})
}

// Sweep removes the files of uploads that have expired or were dropped.
func (x *Uploads) Sweep(ctx context.Context) error {
	all, err := x.files.Uploads()
	if err != nil || len(all) == 0 {
		return err
	}
	for _, u := range all {
		err = errors.Join(err, x.sweepOne(ctx, u))
	}
	return err
}

// isWanted says whether an upload is kept, or loaded by an operation that is not closed and has not switched.
const isWanted = `SELECT EXISTS (SELECT FROM ledger.reservation
		WHERE claimant = $1 AND purpose = 'upload' AND kept_until > clock_timestamp())
	OR EXISTS (SELECT FROM ledger.job j WHERE j.kind = 'restore.load' AND j.payload->'source'->>'upload' = $1
		AND NOT EXISTS (SELECT FROM ledger.operation o WHERE o.id = j.operation_id AND o.closed)
		AND NOT EXISTS (SELECT FROM ledger.command c WHERE c.operation_id = j.operation_id AND c.kind = 'restore.switch'
			AND c.result IS NOT NULL))`

func (x *Uploads) sweepOne(ctx context.Context, u store.Upload) error {
	made := x.arrivals.turns.Try("made " + string(u.ID))
	if made == nil {
		return nil
	}
	defer made()
	sent := x.arrivals.turns.Try("sent " + string(u.ID))
	if sent == nil {
		return nil
	}
	defer sent()
	db, err := x.room.Ledger()
	if err != nil {
		return err
	}
	var wanted bool
	if err := db.QueryRowContext(ctx, isWanted, string(u.ID)).Scan(&wanted); err != nil {
		return fmt.Errorf("look for an upload: %w", err)
	}
	if wanted {
		return nil
	}
	x.log.Info("an upload was removed", zap.String("uploadId", string(u.ID)), zap.String("databaseId", string(u.Database)))
	return x.files.DeleteUpload(u)
}
