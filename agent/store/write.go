package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// checkEvery is how many bytes are written between two checks of the free space.
const checkEvery = 16 << 20

// Draft is a set that is being written, into the spool, until Commit moves it to the blobs. End ends it.
type Draft struct {
	store   *Store
	stem    string // of the backup
	attempt string
	over    func()
	key     []byte
	moved   map[string]bool // by ending, of those that were sent
	// recorded: the record was sent. Whether it has come, only the store knows where nothing was answered.
	recorded bool
}

// Begin begins a set. Nothing that an earlier attempt wrote is used.
func (s *Store) Begin(ctx context.Context, db id.DatabaseID, name backup.Filename) (*Draft, error) {
	begin, err := stem(db, name)
	if err != nil {
		return nil, err
	}
	key, err := s.key(ctx, db)
	if err != nil {
		return nil, err
	}
	d := &Draft{store: s, stem: begin, attempt: newAttempt(), key: key, moved: map[string]bool{}}
	d.over = s.draft(d.attempt)
	return d, nil
}

// blobName is the name that a file gets.
func (d *Draft) blobName(ending string) string {
	if ending == recordEnding {
		return d.stem + ending
	}
	return d.stem + "." + d.attempt + ending
}

// path is where a file is in the spool.
func (d *Draft) path(ending string) string {
	return filepath.Join(d.store.root, spoolFolder, spooled(d.stem, d.attempt, ending))
}

// spooled is the name of a file in the spool; without an attempt, how the names of a backup's files begin.
func spooled(stem, attempt, ending string) string {
	return strings.ReplaceAll(stem, "/", "_") + "." + attempt + ending
}

// File is a file of a set that is being written. It counts and hashes what is written, and returns BACKUP_STORAGE_FULL before it
// uses up the reserve.
type File struct {
	store     *Store
	file      *os.File
	sealing   io.WriteCloser
	name      string
	sum       hash.Hash
	size      int64
	unchecked int64
	growth    growth
}

// Data begins the backup file.
func (d *Draft) Data() (*File, error) { return d.create(dataEnding, backup.FileSuffix) }

// Sidecar begins the file with owners and privileges.
func (d *Draft) Sidecar() (*File, error) { return d.create(sidecarEnding, backup.SidecarSuffix) }

// create begins a file. The suffix is that of its name in the manifest.
func (d *Draft) create(ending, suffix string) (*File, error) {
	file, err := os.OpenFile(d.path(ending), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, full(fmt.Errorf("create backup: %w", err))
	}
	f := &File{store: d.store, file: file, name: filepath.Base(d.stem) + suffix, sum: sha256.New()}
	if f.sealing, err = sealed.NewWriter(spoolWriter{f}, d.key, d.blobName(ending)); err != nil {
		return nil, errors.Join(full(err), file.Close())
	}
	return f, nil
}

// spoolWriter writes what is sealed, as long as there is room.
type spoolWriter struct{ *File }

func (w spoolWriter) Write(p []byte) (int, error) {
	if w.unchecked += int64(len(p)); w.unchecked >= checkEvery {
		w.unchecked = 0
		if err := w.store.room(); err != nil {
			return 0, err
		}
	}
	n, err := w.file.Write(p)
	w.growth.grown()
	return n, full(err)
}

func (f *File) Write(p []byte) (int, error) {
	n, err := f.sealing.Write(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, err
}

// Finish makes what was written durable and closes the file, which stays in the spool until Commit.
func (f *File) Finish() (backup.FileDigest, error) {
	err := f.sealing.Close()
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err != nil {
		f.growth.tell(ErrGone)
		return backup.FileDigest{}, full(fmt.Errorf("make backup durable: %w", err))
	}
	f.growth.tell(io.EOF)
	return backup.FileDigest{Name: f.name, SizeBytes: f.size, SHA256: hex.EncodeToString(f.sum.Sum(nil))}, nil
}

// Close discards the file; after Finish it does nothing.
func (f *File) Close() error {
	f.growth.tell(ErrGone)
	if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// full turns "no space left", "quota exceeded" and "file too large" into BACKUP_STORAGE_FULL.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Prepare writes the manifest and the record, after which the set is complete and durable in the spool.
func (d *Draft) Prepare(m backup.Manifest) (backup.StoredManifest, error) {
	text, err := m.Encode()
	if err != nil {
		return backup.StoredManifest{}, err
	}
	sum := sha256.Sum256(text)
	if _, err = d.writeSmall(manifestEnding, text); err == nil {
		_, err = d.writeSmall(recordEnding, d.record())
	}
	return backup.StoredManifest{Manifest: m, SHA256: hex.EncodeToString(sum[:])}, err
}

// record is the text of the record.
func (d *Draft) record() []byte {
	text, _ := json.Marshal(record{Attempt: d.attempt}) // it never fails
	return text
}

func (d *Draft) writeSmall(ending string, text []byte) (backup.FileDigest, error) {
	file, err := d.create(ending, "")
	if err != nil {
		return backup.FileDigest{}, err
	}
	if _, err := file.Write(text); err != nil {
		return backup.FileDigest{}, errors.Join(err, file.Close())
	}
	return file.Finish()
}

// ErrCommitted says that another attempt at the backup was committed.
var ErrCommitted = errors.New("another attempt at this backup was committed meanwhile")

// Commit moves the set to the blobs, and last its record. The hook is called between the steps. After an error it may be called
// again, and goes on where it was; ErrCommitted is final. Whatever is no longer in the spool is not moved: so a draft that a
// sweep has taken commits nothing.
func (d *Draft) Commit(ctx context.Context, between func(step string)) error {
	if err := d.store.claim(ctx); err != nil {
		return err
	}
	for _, step := range []struct{ ending, done string }{
		{sidecarEnding, "sidecar"}, {manifestEnding, "manifest"}, {dataEnding, "file"},
	} {
		if d.moved[step.ending] {
			continue
		}
		d.moved[step.ending] = false
		err := d.store.blobs.Move(ctx, d.path(step.ending), d.blobName(step.ending))
		if errors.Is(err, fs.ErrNotExist) && d.store.has(ctx, d.blobName(step.ending)) { // it was moved, and the answer was lost
			err = nil
		}
		if err != nil {
			return d.store.unmoved(err)
		}
		d.moved[step.ending] = true
		between(step.done)
	}
	d.recorded = true
	err := d.store.blobs.MoveNew(ctx, d.path(recordEnding), d.blobName(recordEnding))
	if errors.Is(err, blob.ErrExists) || errors.Is(err, fs.ErrNotExist) { // it may be this one, whose answer was lost
		there, failed := d.store.readSmall(ctx, d.key, d.blobName(recordEnding), maxRecord)
		switch {
		case failed != nil:
			err = errors.Join(err, failed)
		case string(there) != string(d.record()):
			return ErrCommitted
		default:
			err = nil
		}
	}
	if err != nil {
		return d.store.unmoved(err)
	}
	return nil
}

// unmoved is an error of Commit: BACKUP_STORAGE_FULL, fs.ErrNotExist where the spool was swept by a successor, or
// BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) unmoved(err error) error {
	if err = full(err); errors.Is(err, fs.ErrNotExist) || fault.Has(err, fault.BackupStorageFull) {
		return fmt.Errorf("commit backup: %w", err)
	}
	return s.unavailable(err)
}

// has reports whether a blob is there for sure.
func (s *Store) has(ctx context.Context, name string) bool {
	src, _, err := s.blobs.Open(ctx, name)
	return err == nil && src.Close() == nil
}

// End ends a draft. What was written of one that was not committed is removed, as far as that is possible and certain. The sweeps
// do the rest.
func (d *Draft) End(ctx context.Context) error {
	d.over()
	d.hide()
	err := d.store.emptySpool(spooled(d.stem, d.attempt, ""))
	if d.recorded {
		return err
	}
	for ending := range d.moved {
		err = errors.Join(err, d.store.blobs.Delete(ctx, d.blobName(ending)))
	}
	return err
}

// Written is the size of what the spool has of a backup.
func (s *Store) Written(db id.DatabaseID, name backup.Filename) (sum int64, err error) {
	begin, err := stem(db, name)
	if err != nil {
		return 0, err
	}
	paths, err := filepath.Glob(filepath.Join(s.root, spoolFolder, spooled(begin, "*", "")))
	for _, path := range paths {
		info, failed := os.Stat(path)
		switch {
		case failed == nil:
			sum += info.Size()
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("size of a backup: %w", err)
	}
	return sum, nil
}

// verified is the mark of a file that was restored and found equal.
type verified struct {
	OperationID    id.OperationID `json:"operationId"`
	SHA256         string         `json:"sha256"` // of the file that was verified
	ManifestSHA256 string         `json:"manifestSha256"`
	At             time.Time      `json:"verifiedAt"`
}

// MarkVerified records that the file was found equal to its manifest.
func (s *Store) MarkVerified(ctx context.Context, m backup.StoredManifest, at time.Time) error {
	set, err := s.find(ctx, m.DatabaseID, m.Filename)
	if err != nil {
		return err
	}
	text, err := json.Marshal(verified{OperationID: m.OperationID, SHA256: m.File.SHA256, ManifestSHA256: m.SHA256, At: at})
	if err != nil {
		return err
	}
	name := set.stem + verifiedEnding
	path := filepath.Join(s.root, spoolFolder, spooled(set.stem, newAttempt(), verifiedEnding))
	defer os.Remove(path) // it was moved, or stands for nothing
	if err := writeSealed(path, set.key, name, text); err != nil {
		return err
	}
	err = s.blobs.MoveNew(ctx, path, name)
	if errors.Is(err, blob.ErrExists) { // a mark of an earlier verification, or one that nobody can read
		if err = s.blobs.Delete(ctx, name); err == nil {
			err = s.blobs.MoveNew(ctx, path, name)
		}
	}
	if err != nil {
		return s.unmoved(err)
	}
	return nil
}

// writeSealed seals a text for a name, and makes it durable at a path.
func writeSealed(path string, key []byte, name string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return full(err)
	}
	writing, err := sealed.NewWriter(file, key, name)
	if err == nil {
		_, err = writing.Write(text)
	}
	if err == nil {
		err = errors.Join(writing.Close(), file.Sync())
	}
	return full(errors.Join(err, file.Close()))
}

const maxMark = 64 << 10

// VerifiedAt is when the file of this manifest was found equal; nil when it was not yet.
func (s *Store) VerifiedAt(ctx context.Context, m backup.StoredManifest) (*time.Time, error) {
	set, err := s.find(ctx, m.DatabaseID, m.Filename)
	if err != nil {
		return nil, err
	}
	text, err := s.readSmall(ctx, set.key, set.stem+verifiedEnding, maxMark)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil // not yet verified is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read the mark of a verification: %w", err)
	}
	var v verified
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("read the mark of a verification: %w", err)
	}
	if v.OperationID != m.OperationID || v.SHA256 != m.File.SHA256 || v.ManifestSHA256 != m.SHA256 {
		return nil, nil // the mark is of another file, or another manifest
	}
	return &v.At, nil
}
