package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
)

// DeletedDatabase is what is left of a deleted database until it is purged.
type DeletedDatabase struct {
	ID             id.DatabaseID           `json:"id"`
	Name           string                  `json:"name" example:"orders"`
	DisplayName    string                  `json:"displayName" example:"Orders"`
	DeletedAt      time.Time               `json:"deletedAt"`
	PurgeAfter     time.Time               `json:"purgeAfter"`
	RecoveryStatus deletion.RecoveryStatus `json:"recoveryStatus"`
	DeletionBackup *DeletionBackup         `json:"deletionBackup" description:"null where the database was deleted without one"`
}

// DeletionBackup is the backup that was made when a database was deleted.
type DeletionBackup struct {
	FileName       backup.Filename `json:"fileName" example:"20260301_113000.sql.gz"`
	Format         string          `json:"format" example:"sql.gz"`
	SizeBytes      int64           `json:"sizeBytes" example:"1048576"`
	ChecksumSHA256 string          `json:"checksumSha256" example:"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
	VerifiedAt     *time.Time      `json:"verifiedAt"`
	DownloadURL    *string         `json:"downloadUrl" description:"path; null where it cannot be downloaded"`
}
