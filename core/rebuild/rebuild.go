// Package rebuild holds the rules of how a database of a server that is gone for good is made anew on another server: with the
// same ID, name, logins and roles, from the archive of the server that is gone or, where that does not have it, from the newest
// verified backup.
package rebuild

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Input is the input of a rebuild, and what is decided on its way.
type Input struct {
	From id.ServerID `json:"lostServer"` // the server that is gone
	Lost string      `json:"lost"`       // its installation
	// SeenAt is when that server was last known to answer: what was committed between the moment that comes back and then is lost.
	SeenAt time.Time `json:"seenAt"`
	// Archive says that its archive can be used.
	Archive bool `json:"archive"`
	// SizeBytes is how large the database was there: what it is on the new server says nothing of that.
	SizeBytes int64 `json:"sizeBytes"`

	// Backup is the backup that the database is made from; empty while it is made from the archive.
	Backup backup.Filename `json:"backup,omitempty"`
	// Filename is that of the file that passes, and ManifestSHA256 that of the file, once there is one.
	Filename       backup.Filename `json:"filename"`
	ManifestSHA256 string          `json:"manifestSha256,omitempty"`
	// AsOf is the moment that comes back, once it is known.
	AsOf  time.Time `json:"asOf,omitzero"`
	Notes []string  `json:"notes,omitempty"` // once the copy is whole
	// Damaged says what is wrong with Backup, where it cannot be used: then another try takes the one before.
	Damaged string `json:"damaged,omitempty"`
}

// Result is the result of a rebuild that succeeded: what was committed after LostFrom, up to LostTo, is not there. Notes name
// what the database had and has no more, and backups that could not be taken over.
type Result struct {
	Source   string          `json:"source"` // "archive" or "backup"
	Filename backup.Filename `json:"filename,omitempty"`
	LostFrom time.Time       `json:"lostFrom"`
	LostTo   time.Time       `json:"lostTo"`
	Notes    []string        `json:"notes"`
}

// The sources.
const (
	FromArchive = "archive"
	FromBackup  = "backup"
)

// Result is what the operation says once the database is back.
func (in Input) Result() Result {
	r := Result{Source: FromArchive, LostFrom: in.AsOf, LostTo: in.SeenAt, Notes: append([]string{}, in.Notes...)}
	if in.Backup != "" {
		r.Source, r.Filename = FromBackup, in.Backup
	}
	if r.LostTo.Before(r.LostFrom) { // it was last heard from before its last commit
		r.LostTo = r.LostFrom
	}
	return r
}

// Pick is the backup that a database is made from: the newest that is verified and not damaged; false where there is none.
func Pick(newestFirst []backup.Backup) (backup.Backup, bool) {
	for _, b := range newestFirst {
		if b.VerifiedAt != nil && b.DamagedAt == nil {
			return b, true
		}
	}
	return backup.Backup{}, false
}

// Admits decides whether a database of a server that is gone is made anew. DATABASE_STATE_CONFLICT: there is nothing to be made
// anew of one that is being created, and one that is deleted stays so; or an operation or a change of a login is open, which is
// ended first.
func Admits(status database.Status, open, change id.OperationID) error {
	switch status {
	case database.Active, database.Stopped, database.Error:
	default:
		return fault.New(fault.DatabaseStateConflict, "its status is %s", status)
	}
	if open != "" {
		return fault.New(fault.DatabaseStateConflict, "an operation is open: %s", open)
	}
	if change != "" {
		return fault.New(fault.DatabaseStateConflict, "a change of a login is pending: %s", change)
	}
	return nil
}
