// Package deletion holds the rules of deleted databases: what is left of one, until when it can be recovered, and the stages of
// its deletion, its recovery and its purge (spec, "Deleted-database record").
package deletion

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// DefaultWindow is how long a deleted database can be recovered, where the operator has chosen nothing else; LeastWindow and
// MostWindow bound the choice.
const (
	DefaultWindow = 7 * 24 * time.Hour
	LeastWindow   = time.Hour
	MostWindow    = 90 * 24 * time.Hour
)

// CheckWindow returns an error where the operator's choice is out of bounds.
func CheckWindow(d time.Duration) error {
	if d < LeastWindow || d > MostWindow {
		return fault.Invalid("recoveryWindow", "must be from %s to %s", LeastWindow, MostWindow)
	}
	return nil
}

// Tombstone is what is left of a deleted database, beside its record: which operation deleted it and what of its backup, what the
// database was, and how much there was in the access snapshot. A recovered database keeps it until it is deleted again.
type Tombstone struct {
	DatabaseID   id.DatabaseID   `db:"database_id"`
	OperationID  id.OperationID  `db:"operation_id"`
	RecoveryID   id.OperationID  `db:"recovery_id"` // the latest operation that is to recover it; empty where none was asked for
	StatusBefore database.Status `db:"status_before"`
	DeletedAt    time.Time       `db:"deleted_at"`
	PurgeAfter   time.Time       `db:"purge_after"`
	// Filename and ChecksumSHA256 bind the deletion backup; both are empty where the database was deleted without one.
	Filename       backup.Filename `db:"filename"`
	ChecksumSHA256 string          `db:"checksum_sha256"`
	Access
}

// Access counts an access snapshot: the members, the keys that were bound to the database, and the entries of its allowlist.
type Access struct {
	Members   int `db:"members"`
	Keys      int `db:"keys"`
	Allowlist int `db:"allowlist"`
}

// Scene is everything about a deleted database that determines what can be done with it.
type Scene struct {
	Database  database.Record
	Tombstone Tombstone
	Backup    *backup.Backup // of the tombstone's name; nil where there is none, or its file is to be deleted
	Found     Access         // what of the snapshot is stored
}

// RecoveryStatus says whether a deleted database can be recovered.
type RecoveryStatus string

// The recovery statuses.
const (
	Recoverable RecoveryStatus = "recoverable"
	Unavailable RecoveryStatus = "unavailable" // its backup or its access snapshot is not whole
	Expired     RecoveryStatus = "expired"     // its time is over
)

// Values lists them for the API's description.
func (RecoveryStatus) Values() []RecoveryStatus {
	return []RecoveryStatus{Recoverable, Unavailable, Expired}
}

// RecoveryStatus is that of a deleted database.
func (s Scene) RecoveryStatus(now time.Time) RecoveryStatus {
	switch {
	case s.expired(now):
		return Expired
	case !s.bound() || s.Found != s.Tombstone.Access:
		return Unavailable
	}
	return Recoverable
}

// expired reports whether the time of recovery is over, which it is from the instant PurgeAfter on, or was when the purge began.
func (s Scene) expired(now time.Time) bool {
	return s.Database.Status == database.Purging || s.Tombstone.Due(now)
}

// Never is PurgeAfter of a recovered database.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Due reports whether the database may be purged.
func (t Tombstone) Due(now time.Time) bool { return !now.Before(t.PurgeAfter) }

// bound reports whether the backup is the one that the deletion made, verified and kept. That its file was damaged since keeps
// nobody from a recovery, which is of the database itself.
func (s Scene) bound() bool {
	b, t := s.Backup, s.Tombstone
	return b != nil && t.DatabaseID == s.Database.ID && b.DatabaseID == t.DatabaseID && b.OperationID == t.OperationID &&
		b.Filename == t.Filename && b.ChecksumSHA256 == t.ChecksumSHA256 && b.Bound() &&
		(b.VerifiedAt != nil || b.DamagedAt != nil) && b.DeletingAt == nil
}

// Downloadable returns the deletion backup as it can be downloaded. DELETION_BACKUP_NOT_AVAILABLE, the same for every cause: the
// database is not deleted, its time is over, or the backup is not the one that its deletion made, or damaged.
func (s Scene) Downloadable(now time.Time) (backup.Backup, error) {
	if s.Database.Status != database.Deleted || s.expired(now) || !s.bound() || s.Backup.DamagedAt != nil {
		return backup.Backup{}, ErrNoBackup()
	}
	return *s.Backup, nil
}

// ErrNoBackup is the one answer about a deletion backup that cannot be had.
func ErrNoBackup() error {
	return fault.New(fault.DeletionBackupNotAvailable, "no deletion backup is available for this database")
}

// AdmitsRecovery decides about a recovery: DATABASE_STATE_CONFLICT where the database is not deleted, or cannot be recovered.
func (s Scene) AdmitsRecovery(now time.Time) error {
	if s.Database.Status != database.Purging {
		if _, err := s.Database.Status.Decide(database.Recover); err != nil {
			return err
		}
	}
	switch s.RecoveryStatus(now) {
	case Recoverable:
		return nil
	case Expired:
		return fault.New(fault.DatabaseStateConflict, "the time in which the database could be recovered is over")
	case Unavailable:
	}
	return fault.New(fault.DatabaseStateConflict,
		"the database cannot be recovered: its deletion backup or its access snapshot is incomplete")
}

// Skipped is what of an access snapshot is not there any more: who is no member any more, and keys that were revoked or unbound.
type Skipped struct {
	Members []id.UserID `json:"members"`
	Keys    []id.KeyID  `json:"keys"`
}
