// Package clone holds the rules of clones: new databases that begin with what another one of the account holds, or held when one
// of its backups was made.
package clone

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// Input is the input of a clone operation, which belongs to the source, and what is decided on its way.
type Input struct {
	DatabaseID id.DatabaseID   `json:"databaseId"` // the clone
	Filename   backup.Filename `json:"filename"`   // a backup of the source or, if Fresh, a file that this operation makes
	Fresh      bool            `json:"fresh,omitempty"`
	At         *time.Time      `json:"at,omitempty"` // the moment that a fresh file is of; nil: as the source is then
	// ServerID is the clone's, where that is another one than the source's. The token by which the agents know each other is sealed
	// beside the input.
	ServerID id.ServerID `json:"serverId,omitempty"`
	// ManifestSHA256 is that of the file, once there is one.
	ManifestSHA256 string   `json:"manifestSha256,omitempty"`
	Notes          []string `json:"notes,omitempty"` // once the copy is whole; see Result
	operation.Ordered
}

// Elsewhere reports whether the clone is on another server than its source.
func (i Input) Elsewhere() bool { return i.ServerID != "" }

// Result is the result of a clone that succeeded. Notes name what the source has and the clone has not, such as a policy none of
// whose roles was cloned.
type Result struct {
	DatabaseID id.DatabaseID `json:"databaseId"`
	Name       string        `json:"name"`
	At         *time.Time    `json:"pointInTime,omitempty"`
	Notes      []string      `json:"notes"`
}

// Request asks for a clone.
type Request struct {
	Name        string
	DisplayName string
	Filename    *backup.Filename // nil: as the source is now, or was at At
	At          *time.Time
	Key         idempotency.Key // empty: every request makes another clone
}

// KeyRoute is the route that keys of clones belong to.
const KeyRoute = "POST /clones"

// Check trims and checks what does not depend on the source: VALIDATION_ERROR names the field; INVALID_BACKUP_FILENAME.
func (r Request) Check() (Request, error) {
	if r.Filename != nil {
		if _, err := backup.ParseFilename(string(*r.Filename)); err != nil {
			return r, err
		}
	}
	if r.Filename != nil && r.At != nil {
		return r, fault.Invalid(recovery.Field, "cannot be given beside filename")
	}
	err := database.ValidateChosenName(r.Name)
	if err == nil {
		r.DisplayName, err = database.ValidateDisplayName(r.DisplayName)
	}
	if err == nil && r.Key != "" {
		_, err = idempotency.Parse(string(r.Key))
	}
	return r, err
}

// Fingerprint identifies what the request asks for.
func (r Request) Fingerprint(source id.DatabaseID) idempotency.Fingerprint {
	from := ""
	switch {
	case r.Filename != nil:
		from = string(*r.Filename)
	case r.At != nil:
		from = recovery.Text(*r.At)
	}
	return idempotency.NewFingerprint(string(source), r.Name, r.DisplayName, from)
}

// Draft is what the record of a clone takes over: its source's role model. Everything else is a new database's.
func (r Request) Draft(source database.Record) database.Record {
	return database.Record{
		Name: r.Name, DisplayName: r.DisplayName, RoleModel: source.RoleModel, Schedule: database.NoSchedule,
		PostgresVersion: source.PostgresVersion,
	}
}

// TooLarge is the refusal of a copy that is larger than a database of the account may be: PLAN_LIMIT; nil where it is not. A
// backup may be of a time when the account had more.
func TooLarge(size int64, clone database.Record) *fault.Error {
	if quota := clone.StorageQuota(); size > quota {
		return fault.New(fault.PlanLimit, "the clone would take %d bytes, and a database of the account may take %d", size, quota)
	}
	return nil
}
