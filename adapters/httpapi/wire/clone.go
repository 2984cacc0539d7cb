package wire

import "github.com/pgherd/pgherd/core/backup"

// CloneDatabase asks for a new database that begins with what another one holds or, with one of the last two fields, held.
type CloneDatabase struct {
	Name        string           `json:"name" description:"3-50 lowercase letters, digits and hyphens" example:"orders-copy"`
	DisplayName string           `json:"displayName" description:"1-64 characters" example:"Copy of Orders"`
	Filename    *backup.Filename `json:"filename,omitzero" description:"a backup to begin with" example:"20260301_113000.sql.gz"`
	// PointInTime is the moment of which the clone is; it is given in place of a file.
	PointInTime *string `json:"pointInTime,omitzero" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
}

// ClonedDatabase is a clone that is being made, as the creation of a database returns it, and the operation that makes it.
type ClonedDatabase struct {
	Message   string          `json:"message" example:"The clone is being made."`
	Operation Operation       `json:"operation" description:"of the source"`
	Database  CreatedDatabase `json:"database"`
}
