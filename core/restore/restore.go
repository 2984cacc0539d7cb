// Package restore holds the rules of restores of a database from one of its own backups: their machine, which backups can be
// restored, and beside what (spec, section "Managed restore").
package restore

import (
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// Input is the input of a restore operation, and what is decided on its way. Managed is one that its callers drive, by advance.
// It is from a backup; where At is set, from a file of that moment that it makes first; or, where Upload is set, from an upload:
// then Filename and ManifestSHA256 are empty.
type Input struct {
	Managed        bool            `json:"managed"`
	Filename       backup.Filename `json:"filename,omitempty"`
	At             *time.Time      `json:"at,omitempty"`
	Upload         *Upload         `json:"upload,omitempty"`
	Consents       `json:"consents,omitzero"`
	ManifestSHA256 string   `json:"manifestSha256,omitempty"` // as the backup's record has it; of a moment, once there is a file
	Notes          []string `json:"notes,omitempty"`          // of the copy that is ready; see Result
	Change         *Change  `json:"change,omitempty"`         // from when the copy is ready
	Open           bool     `json:"open,omitempty"`           // once the switch is intended: the database is open after it
	operation.Ordered
}

// Bare reports whether the file is still to be made.
func (i Input) Bare() bool { return i.At != nil && i.ManifestSHA256 == "" }

// Consents are what whoever asks for a restore agrees to, which is refused otherwise.
type Consents struct {
	AcceptIncomplete bool `json:"acceptIncomplete,omitempty"` // an upload that may be a part of a dump only
	ConfirmShrink    bool `json:"confirmShrink,omitempty"`    // see Change.Refusal
}

// Upload is the dump of the customer's own that a restore is from.
type Upload struct {
	ID        id.UploadID `json:"id"`
	SizeBytes int64       `json:"sizeBytes"`
	SHA256    string      `json:"sha256"`
	// MaxBytes is the quota of the database when the upload was complete.
	MaxBytes int64 `json:"maxBytes,omitempty"`
}

// Result is the result of a restore, from when its copy is ready. Notes name what the backup has and the database has not, such
// as a policy none of whose roles stands any more.
type Result struct {
	Filename backup.Filename `json:"filename,omitempty"`
	At       *time.Time      `json:"pointInTime,omitempty"`
	UploadID id.UploadID     `json:"uploadId,omitempty"`
	Notes    []string        `json:"notes"`
	Change   *Change         `json:"change,omitempty"`
	Consents
}

// The times of a managed restore.
const (
	// CallerAway is how long its callers may stay away before it is canceled.
	CallerAway = time.Hour
	// WorkAway is the same once its switch has begun, or it is being ended: then a worker goes on with it.
	WorkAway = 10 * time.Second
)

// MostSwitches bounds how often a switch is tried that finds the database busy: each attempt ends the sessions of customers.
const MostSwitches = 6

// Request asks for a managed restore: from a backup, or as of a moment.
type Request struct {
	DatabaseID id.DatabaseID
	Filename   backup.Filename // empty: as of At
	At         *time.Time
	Key        idempotency.Key
	Consents   Consents
}

// KeyRoute is the route that keys of managed restores belong to. It names no database: a key belongs to one restore of the
// account.
const KeyRoute = "POST /managed-restores"

// Check refuses a file name or a key that cannot be: INVALID_BACKUP_FILENAME, VALIDATION_ERROR.
func (r Request) Check() error {
	switch {
	case r.Filename == "" && r.At == nil:
		return fault.Invalid("backupFilename", "is required, or %s in its place", recovery.Field)
	case r.Filename != "" && r.At != nil:
		return fault.Invalid(recovery.Field, "cannot be given beside backupFilename")
	case r.Filename != "":
		if _, err := backup.ParseFilename(string(r.Filename)); err != nil {
			return err
		}
	}
	_, err := idempotency.Parse(string(r.Key))
	return err
}

// Fingerprint identifies what the request asks for.
func (r Request) Fingerprint() idempotency.Fingerprint {
	from := string(r.Filename)
	if r.At != nil {
		from = recovery.Text(*r.At)
	}
	return idempotency.NewFingerprint(string(r.DatabaseID), from, strconv.FormatBool(r.Consents.ConfirmShrink))
}

// AdmitsReplay decides about a request whose key was used before: MANAGED_ROLE_CONFLICT where it was for another database or
// backup, or with other consents.
func (r Request) AdmitsReplay(of idempotency.Record) error {
	return of.Replay(r.Fingerprint(), fault.ManagedRoleConflict)
}
