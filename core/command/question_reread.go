package command

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// RereadBackup has the agent read a backup from where it is kept, whole, and compare it with what it was. Asked again under the
// same turn it tells how far that is, and then how it has ended. One backup is read at a time: ReasonCrowded while it is another
// one. A reading has no end in the agent's ledger: an agent that has started anew reads again.
type RereadBackup struct {
	Returns[BackupReading] `json:"-"`
	DatabaseID             id.DatabaseID   `json:"-" path:"id"`
	Filename               backup.Filename `json:"-" path:"filename"`
	// SizeBytes and ManifestSHA256 are those of the backup as it was recorded.
	SizeBytes      int64  `json:"sizeBytes"`
	ManifestSHA256 string `json:"manifestSha256"`
	// Turn tells the reading from earlier ones of the same backup.
	Turn int64 `json:"turn"`
}

// ReadingState says how a reading is going, or what it has found.
type ReadingState string

// The states of a reading.
const (
	ReadingRunning ReadingState = "running"
	ReadingWhole   ReadingState = "whole"
	ReadingDamaged ReadingState = "damaged" // what is kept is not what was stored, or not all of it is there
	ReadingUnsure  ReadingState = "unsure"  // it could not be read to its end, as where the store does not answer
)

// UnmarshalText refuses an unknown state.
func (s *ReadingState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, ReadingRunning, ReadingWhole, ReadingDamaged, ReadingUnsure)
	return err
}

// BackupReading is what the agent has to tell of a reading.
type BackupReading struct {
	State ReadingState `json:"state"`
	// Why says in one line, for an operator, what is damaged, or why nobody can tell.
	Why string `json:"why,omitempty"`
	// VerifiedAt is when a whole backup was verified, as its mark says; nil: it was not.
	VerifiedAt *time.Time `json:"verifiedAt,omitempty"`
}

// Route implements Question.
func (RereadBackup) Route() Route {
	return Route{Method: "POST", Path: "/v1/databases/{id}/backups/{filename}/reread"}
}

// Check implements Question.
func (q RereadBackup) Check() error {
	switch {
	case q.SizeBytes < 0:
		return Refuse(ReasonInvalid, "sizeBytes must not be negative")
	case !sumPattern.MatchString(q.ManifestSHA256):
		return Refuse(ReasonInvalid, "manifestSha256 must be 64 digits of lower-case hex")
	}
	return checkFile(q.DatabaseID, q.Filename)
}
