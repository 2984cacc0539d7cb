package wire

import "github.com/pgherd/pgherd/core/backup"

// ReserveRestore names the backup from which a database is to be restored or, in its place, the moment.
type ReserveRestore struct {
	BackupFilename backup.Filename `json:"backupFilename,omitzero" example:"20260301_113000.sql.gz"`
	PointInTime    *string         `json:"pointInTime,omitzero" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	ConfirmShrink  bool            `json:"confirmShrink,omitzero" description:"as in RestoreBackup" example:"false"`
}

// RestoreBackup confirms a restore. ConfirmShrink has it remove more than nine tenths of the rows or tables, which it does not
// otherwise.
type RestoreBackup struct {
	ConfirmDisconnect bool `json:"confirmDisconnect" description:"must be true: open connections are closed"`
	ConfirmShrink     bool `json:"confirmShrink,omitzero" example:"false"`
}
