package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// AnnounceUpload announces a dump to restore from: what pg_dump writes as SQL, compressed by gzip.
type AnnounceUpload struct {
	SizeBytes      int64  `json:"sizeBytes" example:"5242880"`
	ChecksumSHA256 string `json:"checksumSha256" example:"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
}

// Upload is where to send the dump, and until when.
type Upload struct {
	UploadID  id.UploadID `json:"uploadId"`
	UploadURL string      `json:"uploadUrl" example:"/api/v1/databases/.../backups/restore-upload/..."`
	ExpiresAt time.Time   `json:"expiresAt"`
}

// CompleteUpload has a database restored from an upload. ConfirmDisconnect must be true: its connections are closed.
// ConfirmShrink is as in RestoreBackup. AcceptIncomplete has a file restored that does not end with pg_dump's closing line, so
// that a part of it may be missing.
type CompleteUpload struct {
	UploadID          id.UploadID `json:"uploadId" example:"5c1e7c2e-58c4-4d44-9f0a-3f3f2bb1f1de"`
	ConfirmDisconnect bool        `json:"confirmDisconnect" example:"true"`
	ConfirmShrink     bool        `json:"confirmShrink,omitzero" example:"false"`
	AcceptIncomplete  bool        `json:"acceptIncomplete,omitzero" example:"false"`
}
