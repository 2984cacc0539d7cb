// Package store keeps backups. Each is a set of blobs, sealed with the key of its database: the file itself, the sidecar (the
// schema with owners and privileges) and the manifest. A mark says when the file was last verified.
//
// The files of a set are first written into a folder of this machine, the spool, and made durable. From there they are moved to
// the blobs, under names that are used once, and last the record of the set, which names them: its appearance is the commit.
// Blobs that no record names are left over from a crash, and are swept. Deletion removes the record first.
package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// The endings of the blobs of a set. They follow the stem of the backup's name and, but for the record's, the attempt that made
// them.
const (
	recordEnding   = ".set"
	dataEnding     = ".data"
	sidecarEnding  = ".schema"
	manifestEnding = ".manifest"
	verifiedEnding = ".verified"
)

// The folders that are on this machine wherever blobs are: what is being written, backups that pass, and uploads.
const (
	spoolFolder   = "spool"
	passingFolder = "passing"
	uploadsFolder = "uploads"
)

var localFolders = []string{spoolFolder, passingFolder, uploadsFolder}

func isLocal(path string) bool {
	folder, _, _ := strings.Cut(path, "/")
	return slices.Contains(localFolders, folder)
}

// Store has backups. It may be used concurrently for different ones.
type Store struct {
	root    string
	blobs   blob.Store
	key     func(context.Context, id.DatabaseID) ([]byte, error)
	owner   func(context.Context) (string, error)
	reserve int64
	disk    func(path string) (Disk, error)
	passing *Store

	claimed atomic.Bool // whose the blobs are was seen
	mu      sync.Mutex
	drafts  map[string]bool     // attempts that are being written or committed by this process
	shown   map[string]*Growing // by stem, of those: see Show
}

// Options of a Store.
type Options struct {
	// Blobs is where backups are; nil: in the folder.
	Blobs blob.Store
	// Key returns the key of a database, of sealed.KeyBytes.
	Key func(context.Context, id.DatabaseID) ([]byte, error)
	// Owner tells this server from every other one; nil: nobody else can have the blobs.
	Owner func(context.Context) (string, error)
	// Reserve is how many bytes a backup leaves free on the disk, for others; 0 means 1 GiB.
	Reserve int64
	// Disk says which disk a path is on, and how much is free there; nil asks the file system.
	Disk func(path string) (Disk, error)
}

const defaultReserve = 1 << 30

// New returns a store with its spool in a folder. Nothing is read or written before Sweep.
func New(root string, o Options) *Store {
	if o.Blobs == nil {
		o.Blobs = blob.NewFolder(root)
	}
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	if o.Disk == nil {
		o.Disk = diskOf
	}
	s := &Store{root: root, blobs: o.Blobs, key: o.Key, owner: o.Owner, reserve: o.Reserve, disk: o.Disk,
		drafts: map[string]bool{}, shown: map[string]*Growing{}}
	s.passing = &Store{root: root, blobs: blob.NewFolder(filepath.Join(root, passingFolder)), key: o.Key, reserve: o.Reserve,
		disk: o.Disk, drafts: map[string]bool{}, shown: map[string]*Growing{}}
	return s
}

// Passing returns the store of backups that only this agent reads, until the operation ends that makes them: they never leave the
// folder. It shares the spool.
func (s *Store) Passing() *Store { return s.passing }

// stem begins the names of all blobs of a backup. It refuses an ID or a name that is not canonical, so that no caller can name
// another's.
func stem(db id.DatabaseID, name backup.Filename) (string, error) {
	if err := checkDatabase(db); err != nil {
		return "", err
	}
	if _, err := backup.ParseFilename(string(name)); err != nil {
		return "", err
	}
	return string(db) + "/" + name.Stem(), nil
}

func checkDatabase(db id.DatabaseID) error {
	if _, err := id.Parse[id.DatabaseID](string(db)); err != nil {
		return fmt.Errorf("database ID: %w", err)
	}
	return nil
}

// record is what the commit of a set writes.
type record struct {
	Attempt string `json:"attempt"`
}

// files are the blobs of a committed set.
type files struct {
	key []byte
	// stem begins the name of each, with the attempt.
	stem string
}

// find finds a committed set. BACKUP_NOT_FOUND where there is none.
func (s *Store) find(ctx context.Context, db id.DatabaseID, name backup.Filename) (files, error) {
	return s.findIn(ctx, s.blobs, db, name)
}

func (s *Store) findIn(ctx context.Context, from Source, db id.DatabaseID, name backup.Filename) (files, error) {
	begin, err := stem(db, name)
	if err != nil {
		return files{}, err
	}
	key, err := s.key(ctx, db)
	if err != nil {
		return files{}, err
	}
	text, err := s.readSmallIn(ctx, from, key, begin+recordEnding, maxRecord)
	if err != nil {
		return files{}, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return files{}, fmt.Errorf("the record of the backup %s: %w", name, err)
	}
	return files{key: key, stem: begin + "." + r.Attempt}, nil
}

const maxRecord = 4 << 10

// open opens a blob. What a reader returns is what was sealed, or an error: sealed.ErrDamaged says that it is not.
func (s *Store) open(ctx context.Context, key []byte, name string) (io.ReadCloser, int64, error) {
	return s.openIn(ctx, s.blobs, key, name)
}

func (s *Store) openIn(ctx context.Context, from Source, key []byte, name string) (io.ReadCloser, int64, error) {
	src, info, err := from.Open(ctx, name)
	if err != nil {
		return nil, 0, s.failed(err)
	}
	r := &opening{Closer: src, store: s}
	if r.opened, err = sealed.NewReader(src, key, name); err != nil {
		return nil, 0, errors.Join(s.failed(err), src.Close())
	}
	return r, sealed.Length(info.Bytes), nil
}

// opening is a blob that is read.
type opening struct {
	io.Closer
	opened io.Reader
	store  *Store
}

func (r *opening) Read(p []byte) (int, error) {
	n, err := r.opened.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.store.failed(err)
	}
	return n, err
}

// failed is an error of reading: BACKUP_NOT_FOUND where there is no blob, sealed.ErrDamaged, or BACKUP_STORAGE_UNAVAILABLE, which
// wraps an UnavailableError.
func (s *Store) failed(err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return fault.Wrap(err, fault.BackupNotFound, "the backup file does not exist")
	case errors.Is(err, sealed.ErrDamaged):
		return err
	}
	return s.unavailable(err)
}

// readSmall reads a blob of no more than most bytes.
func (s *Store) readSmall(ctx context.Context, key []byte, name string, most int64) ([]byte, error) {
	return s.readSmallIn(ctx, s.blobs, key, name, most)
}

func (s *Store) readSmallIn(ctx context.Context, from Source, key []byte, name string, most int64) ([]byte, error) {
	src, size, err := s.openIn(ctx, from, key, name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if size > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	return io.ReadAll(src)
}

// Open opens a backup file for reading, with its size. BACKUP_NOT_FOUND where there is none. The context bounds reading, too.
func (s *Store) Open(ctx context.Context, db id.DatabaseID, name backup.Filename) (io.ReadCloser, int64, error) {
	return s.openPart(ctx, db, name, dataEnding)
}

// OpenSidecar opens the schema with owners and privileges, gzipped: a file that is gone once it is closed. BACKUP_NOT_FOUND where
// there is none.
func (s *Store) OpenSidecar(ctx context.Context, db id.DatabaseID, name backup.Filename) (*os.File, error) {
	src, _, err := s.openPart(ctx, db, name, sidecarEnding)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return s.Aside(src)
}

// Aside reads a sidecar that comes from elsewhere into a file that is gone once it is closed.
func (s *Store) Aside(src io.Reader) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Join(s.root, spoolFolder), "schema")
	if err != nil {
		return nil, full(err)
	}
	if err = os.Remove(file.Name()); err == nil {
		_, err = io.Copy(file, src)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(full(err), file.Close())
	}
	return file, nil
}

// OpenSchema opens the schema with owners and privileges, gzipped, for reading it once. BACKUP_NOT_FOUND where there is none.
func (s *Store) OpenSchema(ctx context.Context, db id.DatabaseID, name backup.Filename) (io.ReadCloser, int64, error) {
	return s.openPart(ctx, db, name, sidecarEnding)
}

// OpenManifest opens the manifest of a committed backup as it was written. BACKUP_NOT_FOUND where the set is not committed.
func (s *Store) OpenManifest(ctx context.Context, db id.DatabaseID, name backup.Filename) (io.ReadCloser, int64, error) {
	return s.openPart(ctx, db, name, manifestEnding)
}

func (s *Store) openPart(
	ctx context.Context, db id.DatabaseID, name backup.Filename, ending string,
) (io.ReadCloser, int64, error) {
	set, err := s.find(ctx, db, name)
	if err != nil {
		return nil, 0, err
	}
	return s.open(ctx, set.key, set.stem+ending)
}

// Manifest reads the manifest of a committed backup. BACKUP_NOT_FOUND where the set is not committed; backup.ErrManifest where
// what is stored was damaged.
func (s *Store) Manifest(ctx context.Context, db id.DatabaseID, name backup.Filename) (backup.StoredManifest, error) {
	set, err := s.find(ctx, db, name)
	var text []byte
	if err == nil {
		text, err = s.readSmall(ctx, set.key, set.stem+manifestEnding, backup.MaxManifestBytes)
	}
	if errors.Is(err, sealed.ErrDamaged) {
		err = fmt.Errorf("%w: %w", backup.ErrManifest, err)
	}
	if err != nil {
		return backup.StoredManifest{}, err
	}
	return backup.ParseManifest(text)
}

// List returns the names of the committed backups of a database, oldest first.
func (s *Store) List(ctx context.Context, db id.DatabaseID) (names []backup.Filename, err error) {
	if err := checkDatabase(db); err != nil {
		return nil, err
	}
	err = s.each(ctx, string(db)+"/", func(b blob.Info) error {
		if begin, isRecord := strings.CutSuffix(strings.TrimPrefix(b.Name, string(db)+"/"), recordEnding); isRecord {
			if name, err := backup.ParseFilename(begin + backup.FileSuffix); err == nil {
				names = append(names, name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// each calls do for the blobs below a prefix, in order. What is local is none of them, where they are in the same folder.
func (s *Store) each(ctx context.Context, prefix string, do func(blob.Info) error) error {
	for after, more := "", true; more; {
		var list []blob.Info
		var err error
		if list, more, err = s.blobs.List(ctx, prefix, after, blob.ListLimit); err != nil {
			return s.unavailable(err)
		}
		for _, b := range list {
			if after = b.Name; isLocal(b.Name) {
				continue
			}
			if err := do(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes a backup, and what was written of one that was not committed. It is no error if there is nothing. The backup
// must not be being made.
func (s *Store) Delete(ctx context.Context, db id.DatabaseID, name backup.Filename) error {
	begin, err := stem(db, name)
	if err != nil {
		return err
	}
	if err := s.claim(ctx); err != nil {
		return err
	}
	if err := s.blobs.Delete(ctx, begin+recordEnding); err != nil {
		return s.unavailable(err)
	}
	if err := s.deleteBelow(ctx, begin+"."); err != nil {
		return err
	}
	return s.emptySpool(spooled(begin, "", ""))
}

// DeleteAll removes all that there is of a database. It is no error if there is nothing.
func (s *Store) DeleteAll(ctx context.Context, db id.DatabaseID) error {
	if err := checkDatabase(db); err != nil {
		return err
	}
	if err := s.claim(ctx); err != nil {
		return err
	}
	if err := s.deleteBelow(ctx, string(db)+"/"); err != nil {
		return err
	}
	return s.emptySpool(string(db))
}

func (s *Store) deleteBelow(ctx context.Context, prefix string) error {
	return s.each(ctx, prefix, func(b blob.Info) error {
		if err := s.blobs.Delete(ctx, b.Name); err != nil {
			return s.unavailable(err)
		}
		return nil
	})
}

// emptySpool removes what the spool has whose name begins with a prefix.
func (s *Store) emptySpool(prefix string) error {
	dir := filepath.Join(s.root, spoolFolder)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the spool of backups: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove what was written of a backup: %w", err)
		}
	}
	return nil
}

// Sweep makes the folder and its spool if they do not exist, and empties the spool: an agent calls it when it is in charge and
// has not begun to write. Whoever has files there is no longer in charge, finds them gone, and can commit nothing.
func (s *Store) Sweep() error {
	if err := os.MkdirAll(filepath.Join(s.root, spoolFolder), 0o700); err != nil {
		return fmt.Errorf("make the folder of backups: %w", err)
	}
	return s.emptySpool("")
}

func newAttempt() string { return strings.ToLower(rand.Text()[:12]) }
