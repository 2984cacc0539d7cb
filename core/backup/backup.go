// Package backup holds the rules of backup files: their names, their records, retention, the schedule, the manifest, and the
// comparison of a restored copy with the manifest (spec, section "Backups").
package backup

import (
	"cmp"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Trigger says what asked for a backup.
type Trigger string

// The triggers.
const (
	Manual    Trigger = "manual"
	Scheduled Trigger = "scheduled"
	Deletion  Trigger = "deletion" // the backup that a deleted database is recovered from
)

// Triggers lists them all.
var Triggers = []Trigger{Manual, Scheduled, Deletion}

// Values lists them for the API's description.
func (Trigger) Values() []Trigger { return Triggers }

// FormatSQLGzip is the one format of a backup file: gzip of a SQL dump.
const FormatSQLGzip = "sql.gz"

// Backup is the record of a backup file that exists on a server.
type Backup struct {
	DatabaseID     id.DatabaseID  `db:"database_id"`
	Filename       Filename       `db:"filename"`
	OperationID    id.OperationID `db:"operation_id"`
	Trigger        Trigger        `db:"trigger"`
	Format         string         `db:"format"`
	SizeBytes      int64          `db:"size_bytes"`
	ChecksumSHA256 string         `db:"checksum_sha256"` // lower-case hex, of the file as stored
	ManifestSHA256 string         `db:"manifest_sha256"` // of its manifest
	CreatedAt      time.Time      `db:"created_at"`
	VerifiedAt     *time.Time     `db:"verified_at"`   // when the file was last restored in isolation and found equal
	ExpiresAt      *time.Time     `db:"expires_at"`    // nil: it does not expire
	LastReadAt     *time.Time     `db:"last_read_at"`  // when it was last read again, whole, with whatever was found
	DamagedAt      *time.Time     `db:"damaged_at"`    // when that found it damaged; such a one is not verified
	RoleManifest   bool           `db:"role_manifest"` // its manifest names the logins and their grants
	DeletingAt     *time.Time     `db:"deleting_at"`   // when its deletion was decided; the file may still exist
	KeptBy         id.ServerID    `db:"kept_by"`       // a server that the database has left, and that alone has the file; or empty
	Last           bool           `db:"last"`          // it outlasts all others of its database that stay; not stored
}

// Beginning is what a client has of a file already.
type Beginning struct {
	Bytes  int64
	SHA256 string // of the file that these are the first bytes of; empty where the client does not say
}

// After is the byte from which on a client with a beginning needs the file: 0, all of it, where it has another file's, or no less
// than all.
func (b Backup) After(has Beginning) int64 {
	if has.Bytes < 0 || has.Bytes >= b.SizeBytes || has.SHA256 != "" && has.SHA256 != b.ChecksumSHA256 {
		return 0
	}
	return has.Bytes
}

// Expiry is the retention rule: a backup is kept for the plan's days from its creation, while a deletion backup is kept until
// its tombstone is purged, and so has no expiry of its own, unless the database is recovered.
func Expiry(trigger Trigger, createdAt time.Time, days int) *time.Time {
	if trigger == Deletion {
		return nil
	}
	at := createdAt.AddDate(0, 0, days)
	return &at
}

// Outlasts reports whether retention keeps a backup rather than another one of the same database: one that is verified rather
// than one that is not, and otherwise the newer one. Which outlasts all others is kept for as long as the database lives, however
// old it is; only its customer deletes it.
func (b Backup) Outlasts(other Backup) bool {
	if verified := b.VerifiedAt != nil; verified != (other.VerifiedAt != nil) {
		return verified
	}
	return cmp.Or(b.CreatedAt.Compare(other.CreatedAt), strings.Compare(string(b.Filename), string(other.Filename))) > 0
}

// Expired reports whether retention has ended, which it has from the instant ExpiresAt on, unless no other backup outlasts this
// one.
func (b Backup) Expired(now time.Time) bool {
	return !b.Last && b.ExpiresAt != nil && !now.Before(*b.ExpiresAt)
}

// Ends is when retention removes the backup, or may, as it is shown: nil where it does not, as no other backup outlasts this one,
// whose time is over.
func (b Backup) Ends(now time.Time) *time.Time {
	if b.Last && b.ExpiresAt != nil && !now.Before(*b.ExpiresAt) {
		return nil
	}
	return b.ExpiresAt
}

// Bound reports whether the file belongs to the tombstone of its database. The backup of a deletion that was taken back has an
// expiry, and is one like any other.
func (b Backup) Bound() bool { return b.Trigger == Deletion && b.ExpiresAt == nil }

// Deletable decides whether a customer may delete the file. A deletion backup belongs to its tombstone: BACKUP_CONFLICT.
func (b Backup) Deletable() error {
	if b.Bound() {
		return fault.New(fault.BackupConflict, "a deletion backup is removed with its deleted database")
	}
	return nil
}
