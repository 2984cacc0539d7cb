package wire

import "github.com/pgherd/pgherd/core/backup"

// ReserveRestore names the backup from which a database is to be restored.
type ReserveRestore struct {
	BackupFilename backup.Filename `json:"backupFilename" example:"20260301_113000.sql.gz"`
}
