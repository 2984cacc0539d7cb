package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// DamagedError says of a backup that what the blobs give is not what was stored, or not all of it is there.
type DamagedError struct {
	What string // in one line, for an operator
	err  error
}

func (e *DamagedError) Error() string { return e.What }

func (e *DamagedError) Unwrap() error { return e.err }

// Reread reads a committed backup whole, no faster than readPace, and compares its manifest with the SHA-256 that this was
// recorded with, and the other files with the manifest. It returns when the backup was verified, as its mark says. A
// *DamagedError is what two readings have found, in blobs that are this server's. After any other error, nobody can tell:
// BACKUP_STORAGE_UNAVAILABLE wraps an UnavailableError.
func (s *Store) Reread(
	ctx context.Context, db id.DatabaseID, name backup.Filename, manifestSHA256 string,
) (verifiedAt *time.Time, err error) {
	var damaged *DamagedError
	for range 2 {
		if verifiedAt, err = s.reread(ctx, db, name, manifestSHA256); !errors.As(err, &damaged) {
			return verifiedAt, err
		}
	}
	// Where a file system is not mounted, or the bucket is another one, everything is missing.
	if foreign := s.confirm(ctx); foreign != nil {
		return nil, foreign
	}
	return nil, err
}

func (s *Store) reread(
	ctx context.Context, db id.DatabaseID, name backup.Filename, manifestSHA256 string,
) (*time.Time, error) {
	set, err := s.find(ctx, db, name)
	if err != nil {
		return nil, damage("its record", err)
	}
	text, err := s.readSmall(ctx, set.key, set.stem+manifestEnding, backup.MaxManifestBytes)
	var m backup.StoredManifest
	if err == nil {
		m, err = backup.ParseManifest(text)
	}
	switch {
	case err != nil:
		return nil, damage("its manifest", err)
	case m.SHA256 != manifestSHA256:
		return nil, &DamagedError{What: "its manifest is another one, with the SHA-256 " + m.SHA256}
	}
	for _, part := range []struct {
		what, ending string
		want         backup.FileDigest
	}{{"its data", dataEnding, m.File}, {"its schema", sidecarEnding, m.Sidecar}} {
		if err := s.compare(ctx, set.key, set.stem+part.ending, part.want); err != nil {
			return nil, damage(part.what, err)
		}
	}
	at, err := s.VerifiedAt(ctx, m)
	if errors.Is(err, sealed.ErrDamaged) { // the mark is none of the backup
		return nil, nil
	}
	return at, err
}

// errOther is the error of a file that is not the one that its manifest describes.
var errOther = errors.New("it is not what its manifest says")

func damage(what string, err error) error {
	switch {
	case fault.Has(err, fault.BackupNotFound):
		return &DamagedError{what + " is gone", err}
	case errors.Is(err, sealed.ErrDamaged), errors.Is(err, backup.ErrManifest), errors.Is(err, errOther):
		return &DamagedError{what + ": " + err.Error(), err}
	}
	return err
}

func (s *Store) compare(ctx context.Context, key []byte, name string, want backup.FileDigest) error {
	src, _, err := s.open(ctx, key, name)
	if err != nil {
		return err
	}
	defer src.Close()
	h := sha256.New()
	size, err := paced(ctx, h, src)
	if sum := hex.EncodeToString(h.Sum(nil)); err == nil && (size != want.SizeBytes || sum != want.SHA256) {
		err = fmt.Errorf("%w: there are %d bytes with the SHA-256 %s", errOther, size, sum)
	}
	return err
}

const (
	// readPace is how many bytes are read in a second at most: others need the disk and the line, too, and some stores are paid for
	// what is read.
	readPace  = 32 << 20
	readPiece = 1 << 20
)

// paced copies to the end of src, no faster than readPace.
func paced(ctx context.Context, dst io.Writer, src io.Reader) (size int64, err error) {
	for began := time.Now(); ; {
		n, err := io.CopyN(dst, src, readPiece)
		if size += n; errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		due := began.Add(time.Duration(size) * time.Second / readPace)
		if err := loop.Wait(ctx, time.Until(due)); err != nil {
			return size, err
		}
	}
}
