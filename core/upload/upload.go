// Package upload holds the rules of the dumps that customers upload to restore from: what may be announced, how much an account
// may have at a time, and what a request that carries a piece of one says about it.
package upload

import (
	"regexp"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Upload is the record of a file that a customer has announced. Its bytes are only on the database server.
type Upload struct {
	ID         id.UploadID   `db:"id"`
	DatabaseID id.DatabaseID `db:"database_id"`
	// OperationID is the restore that it is for; empty until it is complete.
	OperationID id.OperationID `db:"operation_id"`
	SizeBytes   int64          `db:"size_bytes"` // compressed, as announced
	SHA256      string         `db:"sha256"`     // of these bytes, in lower-case hex
	CreatedAt   time.Time      `db:"created_at"`
	ExpiresAt   time.Time      `db:"expires_at"`
}

// The limits of uploads.
const (
	// Lifetime is how long a customer has from the announcement until the upload is complete.
	Lifetime = time.Hour
	// Grace is how much longer a server keeps one by itself. Before that it is told when an upload has ended: a restore that
	// has to wait finds it, and what nobody knows of any more is removed all the same.
	Grace = 24 * time.Hour
	// MostBytes bounds one upload, compressed.
	MostBytes = 10 << 30
	// MostOpen and MostOpenBytes bound those that an account has at a time, on all of its databases together: each holds room
	// on a server from its announcement until it has ended.
	MostOpen      = 4
	MostOpenBytes = 2 * MostBytes
)

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// New is the record of an upload that is announced now. VALIDATION_ERROR.
func New(of id.UploadID, db id.DatabaseID, size int64, sha256 string, now time.Time) (u Upload, err error) {
	switch {
	case size < 1 || size > MostBytes:
		return u, fault.Invalid("sizeBytes", "must be from 1 to %d, the size of the compressed dump", int64(MostBytes))
	case !sumPattern.MatchString(sha256):
		return u, fault.Invalid("checksumSha256", "must be 64 digits of lower-case hex: the SHA-256 of the compressed dump")
	}
	return Upload{
		ID: of, DatabaseID: db, SizeBytes: size, SHA256: sha256, CreatedAt: now, ExpiresAt: now.Add(Lifetime),
	}, nil
}

// Takes reports whether it takes bytes, and may be completed.
func (u Upload) Takes(now time.Time) bool { return u.OperationID == "" && now.Before(u.ExpiresAt) }

// KeptUntil is when the server removes it by itself.
func (u Upload) KeptUntil() time.Time { return u.CreatedAt.Add(Lifetime + Grace) }

// Ended is the upload as one that takes nothing any more, whatever the clock of a host says.
func (u Upload) Ended() Upload {
	u.ExpiresAt = u.CreatedAt
	return u
}

// Admits decides whether an account may announce another one beside those that hold room for it. BACKUP_STORAGE_FULL.
func Admits(beside []Upload, u Upload) error {
	bytes := u.SizeBytes
	for _, one := range beside {
		bytes += one.SizeBytes
	}
	switch {
	case len(beside) >= MostOpen:
		return fault.New(fault.BackupStorageFull,
			"the account has %d uploads: complete them, or wait until they have expired", len(beside))
	case bytes > MostOpenBytes:
		return fault.New(fault.BackupStorageFull,
			"with this one the uploads of the account would have %d bytes, and %d is the most", bytes, int64(MostOpenBytes))
	}
	return nil
}

// Complete refuses an upload of which only so much has come: BACKUP_CONFLICT.
func (u Upload) Complete(received int64) error {
	if received != u.SizeBytes {
		return fault.New(fault.BackupConflict, "the upload has %d of %d bytes: send the rest first", received, u.SizeBytes)
	}
	return nil
}

// NotFound is the error for an upload that is missing, has expired, or was completed.
func NotFound() error {
	return fault.New(fault.UploadNotFound, "no such upload, or it has expired, was replaced by another one, or is complete")
}
