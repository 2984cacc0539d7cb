package copies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// fileSet is a backup, or an upload, that is open. Of an upload there is only the data, and its manifest says nothing but the
// locale. Of a file that passes at a peer, there is no sidecar until its data have come, and the manifest may be a beginning.
type fileSet struct {
	manifest backup.StoredManifest
	data     source
	size     int64 // of the data; 0 while they are being written
	sidecar  *os.File
	counted  map[string]int64 // rows of its tables, while they were restored
	took     time.Duration    // to make it; negative where that is not known
	uploaded bool
	passing  bool // it is packed with zstd; everything else is gzip
}

// source is a file that can be read again from its beginning.
type source interface {
	io.ReadCloser
	rewind() error
}

// local is a file of this machine. It is read to its end whoever deletes it meanwhile.
type local struct{ *os.File }

func (f local) rewind() error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// remote is opened again to be read again, and may be opened only then. Who deletes it may end the reading.
type remote struct {
	io.ReadCloser
	read   bool
	reopen func() (io.ReadCloser, error)
}

// unopened is what a remote is before it is read.
var unopened = io.NopCloser(strings.NewReader(""))

func (r *remote) Read(p []byte) (int, error) {
	r.read = true
	return r.ReadCloser.Read(p)
}

func (r *remote) rewind() error {
	if !r.read {
		return nil
	}
	again, err := r.reopen()
	if err != nil {
		return err
	}
	_ = r.Close() // it was only read
	r.ReadCloser, r.read = again, false
	return nil
}

// openFile opens the file of a backup.
func (x *Copies) openFile(ctx context.Context, of command.Source) (source, int64, error) {
	files := x.FilesOf(of.Passing)
	file, size, err := files.Open(ctx, of.DatabaseID, of.Filename)
	if err != nil {
		return nil, 0, err
	}
	return &remote{ReadCloser: file, reopen: func() (io.ReadCloser, error) {
		again, _, err := files.Open(ctx, of.DatabaseID, of.Filename)
		return again, err
	}}, size, nil
}

// openSet opens the backup of a request. Manifest and sidecar are checked at once, the file itself while it is read.
func (x *Copies) openSet(ctx context.Context, req Request) (set *fileSet, err error) {
	set = &fileSet{passing: req.Source.Passing}
	files := x.FilesOf(req.Source.Passing)
	defer func() {
		if err != nil {
			set.close()
		}
	}()
	if set.data, set.size, err = x.openFile(ctx, req.Source); err != nil {
		return set, damagedSet(err)
	}
	set.manifest, err = files.Manifest(ctx, req.Source.DatabaseID, req.Source.Filename)
	switch {
	case errors.Is(err, backup.ErrManifest):
		return set, unlike(err)
	case err != nil:
		return set, err
	case req.Source.ManifestSHA256 != "" && req.Source.ManifestSHA256 != set.manifest.SHA256:
		return set, unlike(errors.New("its manifest is not the one that was recorded when it was made"))
	case set.manifest.DatabaseID != req.Source.DatabaseID || set.manifest.Filename != req.Source.Filename:
		return set, unlike(errors.New("its manifest is another backup's"))
	}
	if set.sidecar, err = files.OpenSidecar(ctx, req.Source.DatabaseID, req.Source.Filename); err != nil {
		switch {
		case fault.Has(err, fault.BackupNotFound):
			err = unlike(errMissingSidecar)
		case errors.Is(err, sealed.ErrDamaged):
			err = unlike(errDamagedSidecar)
		}
		return set, err
	}
	set.took = set.manifest.WrittenAt.Sub(set.manifest.CreatedAt)
	return set, set.checkSidecar()
}

// checkSidecar refuses a sidecar that is not the manifest's, or says what no copy could become.
func (s *fileSet) checkSidecar() error {
	whole, err := isSidecar(s.sidecar, s.manifest.Manifest)
	switch {
	case err != nil:
		return err
	case !whole:
		return unlike(errDamagedSidecar)
	}
	schema, err := s.schema()
	if err == nil {
		err = unsuited(sidecar.Check(schema))
	}
	return err
}

var (
	errMissingSidecar = errors.New("its schema with owners and privileges is missing")
	errDamagedSidecar = errors.New("its schema with owners and privileges is damaged: its SHA-256 is not the manifest's")
)

// isSidecar reads a sidecar, and reports whether it is the one that the manifest names.
func isSidecar(file io.Reader, m backup.Manifest) (bool, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)) == m.Sidecar.SHA256, err
}

// damagedSet is BACKUP_NOT_VERIFIED for a file that is not what was sealed.
func damagedSet(err error) error {
	if errors.Is(err, sealed.ErrDamaged) {
		return backup.NotVerified(&damagedError{err})
	}
	return err
}

func unlike(why error) error {
	return fault.Wrap(why, fault.BackupNotVerified, "the backup cannot be restored: %s", why.Error())
}

// schema reads the sidecar from its beginning.
func (s *fileSet) schema() (io.Reader, error) {
	if err := (local{s.sidecar}).rewind(); err != nil {
		return nil, err
	}
	return unzip(s.sidecar)
}

func (s *fileSet) close() { // all was only read
	if s.data != nil {
		_ = s.data.Close()
	}
	if s.sidecar != nil {
		_ = s.sidecar.Close()
	}
}
