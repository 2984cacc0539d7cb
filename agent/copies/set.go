package copies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// fileSet is a backup, or an upload, that is open: it can be read to its end whoever deletes it meanwhile. Of an upload there is
// only the data, and its manifest says nothing but the locale.
type fileSet struct {
	manifest backup.StoredManifest
	data     *os.File
	size     int64
	sidecar  *os.File
	took     time.Duration // to make it
	uploaded bool
}

// openSet opens the backup of a request. Manifest and sidecar are checked at once, the file itself while it is read.
func (x *Copies) openSet(req Request) (set *fileSet, err error) {
	set = &fileSet{}
	defer func() {
		if err != nil {
			set.close()
		}
	}()
	if set.data, set.size, err = x.Files.Open(req.Source.DatabaseID, req.Source.Filename); err != nil {
		return set, err
	}
	set.manifest, err = x.Files.Manifest(req.Source.DatabaseID, req.Source.Filename)
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
	if set.sidecar, _, err = x.Files.OpenSidecar(req.Source.DatabaseID, req.Source.Filename); err != nil {
		if fault.Has(err, fault.BackupNotFound) {
			err = unlike(errMissingSidecar)
		}
		return set, err
	}
	made, err := x.Files.MadeAt(set.manifest.Manifest)
	if err != nil {
		return set, err
	}
	set.took = made.Sub(set.manifest.CreatedAt)
	whole, err := isSidecar(set.sidecar, set.manifest.Manifest)
	switch {
	case err != nil:
		return set, err
	case !whole:
		return set, unlike(errDamagedSidecar)
	}
	schema, err := set.schema()
	if err == nil {
		err = unsuited(sidecar.Check(schema))
	}
	return set, err
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

func unlike(why error) error {
	return fault.Wrap(why, fault.BackupNotVerified, "the backup cannot be restored: %s", why.Error())
}

// schema reads the sidecar from its beginning.
func (s *fileSet) schema() (io.Reader, error) {
	if err := s.rewind(s.sidecar); err != nil {
		return nil, err
	}
	return unzip(s.sidecar)
}

func (s *fileSet) rewind(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

func (s *fileSet) close() {
	for _, file := range []*os.File{s.data, s.sidecar} {
		if file != nil {
			_ = file.Close() // it was only read
		}
	}
}
