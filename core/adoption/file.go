package adoption

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// File makes the record of a backup of a database that has none, of its manifest and of when it was verified, as its own mark
// says; nil: it was not. Its retention begins now, however old it is, so that it does not go before somebody has looked at it.
// One that a deletion has made becomes one like any other. DATABASE_STATE_CONFLICT: the manifest is another backup's.
func File(
	db id.DatabaseID, name backup.Filename, m backup.StoredManifest, verifiedAt *time.Time, now time.Time, days int,
) (backup.Backup, error) {
	if m.DatabaseID != db || m.Filename != name {
		return backup.Backup{}, fault.New(fault.DatabaseStateConflict, "the manifest of %s is that of %s of the database %s",
			name, m.Filename, m.DatabaseID)
	}
	return backup.Backup{
		DatabaseID: db, Filename: name, OperationID: m.OperationID, Trigger: backup.Manual, Format: backup.FormatSQLGzip,
		SizeBytes: m.File.SizeBytes, ChecksumSHA256: m.File.SHA256, ManifestSHA256: m.SHA256, CreatedAt: m.CreatedAt,
		VerifiedAt: verifiedAt, LastReadAt: &now, ExpiresAt: backup.Expiry(backup.Manual, now, days), RoleManifest: m.HasRoles(),
	}, nil
}
