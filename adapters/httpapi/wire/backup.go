package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Backup is one file with a database's content. VerifiedAt is null before the file was compared with the database.
type Backup struct {
	Filename       backup.Filename `json:"filename"`
	OperationID    id.OperationID  `json:"operationId" format:"uuid"`
	Trigger        backup.Trigger  `json:"trigger"`
	Format         string          `json:"format"`
	SizeBytes      int64           `json:"sizeBytes"`
	ChecksumSHA256 string          `json:"checksumSha256"`
	CreatedAt      time.Time       `json:"createdAt"`
	VerifiedAt     *time.Time      `json:"verifiedAt"`
	ExpiresAt      *time.Time      `json:"expiresAt"`
	RoleManifest   bool            `json:"roleManifest"`
}
