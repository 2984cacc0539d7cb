package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Backup is one file with a database's content. VerifiedAt is null before the file was compared with the database, and once it
// was found damaged where it is stored, which DamagedAt then says.
type Backup struct {
	Filename       backup.Filename `json:"filename" example:"20260301_113000.sql.gz"`
	OperationID    id.OperationID  `json:"operationId"`
	Trigger        backup.Trigger  `json:"trigger"`
	Format         string          `json:"format" example:"sql.gz"`
	SizeBytes      int64           `json:"sizeBytes" example:"1048576"`
	ChecksumSHA256 string          `json:"checksumSha256" example:"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
	CreatedAt      time.Time       `json:"createdAt"`
	VerifiedAt     *time.Time      `json:"verifiedAt"`
	DamagedAt      *time.Time      `json:"damagedAt,omitzero"`
	ExpiresAt      *time.Time      `json:"expiresAt"`
	RoleManifest   bool            `json:"roleManifest"`
}
