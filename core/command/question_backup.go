package command

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// RoomForBackup refuses with ReasonStorageFull where the server has no room for another backup of the database.
type RoomForBackup struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"-" path:"id"`
}

// Route implements Question.
func (RoomForBackup) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/backups/room"}
}

// Check implements Question.
func (q RoomForBackup) Check() error { return checkDatabase(q.DatabaseID) }

// DeleteBackup removes a file; a missing file is no error.
type DeleteBackup struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID   `json:"-" path:"id"`
	Filename      backup.Filename `json:"-" path:"filename"`
}

// Route implements Question.
func (DeleteBackup) Route() Route {
	return Route{Method: "DELETE", Path: "/v1/databases/{id}/backups/{filename}"}
}

// Check implements Question.
func (q DeleteBackup) Check() error { return checkFile(q.DatabaseID, q.Filename) }

// OpenBackup asks for a file itself. ReasonNotFound: it does not exist.
type OpenBackup struct {
	DatabaseID id.DatabaseID   `json:"-" path:"id"`
	Filename   backup.Filename `json:"-" path:"filename"`
}

// Route implements Question.
func (OpenBackup) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/backups/{filename}"}
}

// Check implements Question.
func (q OpenBackup) Check() error { return checkFile(q.DatabaseID, q.Filename) }

// OpenRest asks for a file without its first bytes; nothing is left of one that has no more. ReasonNotFound: it does not exist.
type OpenRest struct {
	DatabaseID id.DatabaseID   `json:"-" path:"id"`
	Filename   backup.Filename `json:"-" path:"filename"`
	Offset     int64           `json:"-" path:"offset"` // of the first byte that is asked for
}

// Route implements Question.
func (OpenRest) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/backups/{filename}/from/{offset}"}
}

// Check implements Question.
func (q OpenRest) Check() error {
	if q.Offset < 0 {
		return Refuse(ReasonInvalid, "offset must be a number of bytes")
	}
	return checkFile(q.DatabaseID, q.Filename)
}

// OpenManifest asks for the manifest of a backup, as it is in its file. ReasonNotFound: the backup does not exist.
type OpenManifest struct {
	DatabaseID id.DatabaseID   `json:"-" path:"id"`
	Filename   backup.Filename `json:"-" path:"filename"`
}

// Route implements Question.
func (OpenManifest) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/backups/{filename}/manifest"}
}

// Check implements Question.
func (q OpenManifest) Check() error { return checkFile(q.DatabaseID, q.Filename) }
