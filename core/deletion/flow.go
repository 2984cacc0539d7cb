package deletion

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Input is the input of an operation that deletes a database, and what is decided on its way.
type Input struct {
	From       database.Status `json:"from"`       // what the database was
	Generation int64           `json:"generation"` // of the access that closes it
	// Filename is that of the deletion backup; none where it is deleted without one.
	Filename backup.Filename `json:"filename,omitempty"`
	Made     *Made           `json:"made,omitempty"` // once there is a backup
	// Isolated says that its server had it out of service when its deletion was asked for: there is nothing to close then, and
	// nothing to make a backup of.
	Isolated bool `json:"isolated,omitempty"`
	// Missing means that the server has no such database any more, so that there is nothing to open again.
	Missing bool `json:"missing,omitempty"`
}

// Made is a backup as the server has made and verified it.
type Made struct {
	SizeBytes      int64      `json:"sizeBytes"`
	ChecksumSHA256 string     `json:"checksumSha256"`
	ManifestSHA256 string     `json:"manifestSha256,omitempty"`
	VerifiedAt     *time.Time `json:"verifiedAt"`
	RoleManifest   bool       `json:"roleManifest,omitempty"`
}

// Backup is the record of the backup that an operation has made; nil where it has made none.
func (i Input) Backup(db id.DatabaseID, op id.OperationID, createdAt time.Time) *backup.Backup {
	if i.Made == nil {
		return nil
	}
	return &backup.Backup{
		DatabaseID: db, Filename: i.Filename, OperationID: op, Trigger: backup.Deletion, Format: backup.FormatSQLGzip,
		SizeBytes: i.Made.SizeBytes, ChecksumSHA256: i.Made.ChecksumSHA256, ManifestSHA256: i.Made.ManifestSHA256,
		CreatedAt: createdAt, VerifiedAt: i.Made.VerifiedAt, RoleManifest: i.Made.RoleManifest,
	}
}

// Result is the result of a deletion; DeletionBackup is null where there is none.
type Result struct {
	PurgeAfter     time.Time `json:"purgeAfter"`
	DeletionBackup *Copy     `json:"deletionBackup"`
}

// Copy is a deletion backup as it is shown.
type Copy struct {
	FileName       backup.Filename `json:"fileName"`
	Format         string          `json:"format"`
	SizeBytes      int64           `json:"sizeBytes"`
	ChecksumSHA256 string          `json:"checksumSha256"`
	VerifiedAt     *time.Time      `json:"verifiedAt"`
}

// CopyOf shows a backup; nil for none.
func CopyOf(b *backup.Backup) *Copy {
	if b == nil {
		return nil
	}
	return &Copy{b.Filename, b.Format, b.SizeBytes, b.ChecksumSHA256, b.VerifiedAt}
}

// RecoveryInput is the input of an operation that recovers a database.
type RecoveryInput struct {
	Status database.Status `json:"status"` // that it is to have
}

// RecoveryResult is the result of a recovery.
type RecoveryResult struct {
	DatabaseID id.DatabaseID `json:"databaseId"`
	Restored   Restored      `json:"restored"`
	Skipped    Skipped       `json:"skipped"`
}

// Restored counts what of the access snapshot is in force again.
type Restored struct {
	Members          int `json:"members"`
	AllowlistEntries int `json:"allowlistEntries"`
	KeyBindings      int `json:"keyBindings"`
}

// Recovered is the result of a recovery from a snapshot of which some is not there any more.
func Recovered(t Tombstone, s Skipped) RecoveryResult {
	s.Members, s.Keys = append([]id.UserID{}, s.Members...), append([]id.KeyID{}, s.Keys...) // never null
	return RecoveryResult{t.DatabaseID, Restored{
		Members: t.Members - len(s.Members), AllowlistEntries: t.Allowlist, KeyBindings: t.Keys - len(s.Keys),
	}, s}
}

// reopened are the events by which a database becomes what it was.
var reopened = map[database.Status]database.Event{ //nolint:exhaustive // what a deletion begins with
	database.Active: database.ReopenAsActive, database.Stopped: database.ReopenAsStopped, database.Error: database.ReopenAsError,
}

// Reopen is the status of a database that becomes again what it was.
func Reopen(now, was database.Status) (database.Status, error) {
	if now == was {
		return was, nil // nobody knew how to open it, and it was so before
	}
	cell, err := now.Decide(reopened[was])
	return cell.Next, err
}
