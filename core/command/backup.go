package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Backup starts the backup, resumes it after a crash, or reports its progress. It returns at once.
type Backup struct {
	Returns[BackupReport] `json:"-"`
	DatabaseID            id.DatabaseID   `json:"databaseId"`
	Filename              backup.Filename `json:"filename"`
	Verify                bool            `json:"verify"`
	// MaxBytes is how large the file may become; 0: as large as the server has room for. One that becomes larger is
	// BackupFailed with ReasonStorageFull.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// Passing says that only the operation that makes the file, a clone, uses it: it is not a backup. It completes no
	// operation: Close removes it, and so does Discard.
	Passing bool `json:"passing,omitempty"`
	// ForDeletion says that the file is made on the way to an Isolate of the same operation, which keeps it. Until then it completes
	// no operation, and Close removes it.
	ForDeletion bool `json:"forDeletion,omitempty"`
	// At, of a file that passes, has the file be of what the database held then, out of the server's archive: with every transaction
	// that was committed at that moment or before, and none after. The database may have been replaced or isolated since. Its stages
	// are recovery.Fetching and recovery.Replaying before that of the dump. ReasonNotRecoverable: the archive does not have it.
	At *time.Time `json:"at,omitempty"`
	// Lost, of a file that passes, has the file be of what the database held last on a server that is gone, out of that one's
	// archive: see Inherit. It was SizeBytes large, as far as that is known. ReasonNotFound: the archive does not have the database.
	// ReasonNotRecoverable: there is no archive, or Inherit has not been said of that server.
	Lost      string `json:"lost,omitempty"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	// Followed, of a file that passes, has the file be of the moment at which a replication slot begins, so that a Follow of the
	// same operation at another server can go on from there. The slot is bounded, and goes with the operation.
	Followed bool `json:"followed,omitempty"`
}

// About implements Command.
func (c Backup) About() About {
	about := ofDatabase("backup.run", c.DatabaseID, 1)
	switch {
	case c.Passing:
		about.Step = stepCloneDump
	case c.ForDeletion:
		about.Step = stepDeleteDump
	}
	return about
}

// The steps of files that are made on the way to something larger.
const (
	stepCloneDump  = "clone.dump"
	stepDeleteDump = "delete.dump"
)

// Steps are those of a backup, of a file that passes, and of one that a deletion needs.
func (c Backup) Steps() []string {
	return []string{string(c.About().Kind), stepCloneDump, stepDeleteDump}
}

// Check implements Command.
func (c Backup) Check() error {
	if c.MaxBytes < 0 {
		return Refuse(ReasonInvalid, "maxBytes must not be negative")
	}
	if c.Passing && c.ForDeletion {
		return Refuse(ReasonInvalid, "a file that passes is none of a deletion")
	}
	if c.At != nil && !c.Passing {
		return Refuse(ReasonInvalid, "a file of another moment than now only passes")
	}
	if c.Followed && (!c.Passing || c.Apart()) {
		return Refuse(ReasonInvalid, "a file that is followed only passes, and is of now")
	}
	switch {
	case c.Lost == "":
	case c.At != nil || !c.Passing || c.SizeBytes < 0:
		return Refuse(ReasonInvalid, "a file of a server that is gone only passes, is of the last moment, and has a size")
	default:
		if err := checkInstallation(c.Lost); err != nil {
			return err
		}
	}
	return checkFile(c.DatabaseID, c.Filename)
}

// Apart reports whether the file is of something else than the database as it stands.
func (c Backup) Apart() bool { return c.At != nil || c.Lost != "" }

// BackupState says whether a backup runs or has ended.
type BackupState string

// The states of a backup.
const (
	BackupRunning     BackupState = "running"
	BackupDone        BackupState = "done"
	BackupNotVerified BackupState = "not_verified" // the file exists, but its restored copy differs
	BackupFailed      BackupState = "failed"       // there is no file
)

// UnmarshalText refuses an unknown state: it does not say what became of the backup.
func (s *BackupState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, BackupRunning, BackupDone, BackupNotVerified, BackupFailed)
	return err
}

// BackupReport is the progress or result of a backup.
type BackupReport struct {
	State          BackupState `json:"state"`
	Stage          string      `json:"stage"`
	Progress       int         `json:"progress"`
	Bytes          Bytes       `json:"bytes,omitzero"`
	Reason         Reason      `json:"reason,omitempty"`  // of BackupFailed
	Message        string      `json:"message,omitempty"` // of BackupFailed and BackupNotVerified; fit for the customer
	SizeBytes      int64       `json:"sizeBytes,omitempty"`
	ChecksumSHA256 string      `json:"checksumSha256,omitempty"`
	ManifestSHA256 string      `json:"manifestSha256,omitempty"` // of BackupDone and BackupNotVerified
	VerifiedAt     *time.Time  `json:"verifiedAt,omitempty"`
	RoleManifest   bool        `json:"roleManifest,omitempty"`
	// AsOf is the time of the last commit in a file of a server that is gone; nil where that is not known any more.
	AsOf *time.Time `json:"asOf,omitempty"`
}

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed.
func (r *BackupReport) UnmarshalJSON(text []byte) error {
	type fields BackupReport
	if err := json.Unmarshal(text, (*fields)(r)); err != nil {
		return err
	}
	r.Progress, r.Bytes = min(max(r.Progress, 0), 100), r.Bytes.bounded()
	if r.State == BackupFailed && !slices.Contains(Reasons, r.Reason) {
		r.Reason = ReasonFailed
	}
	return nil
}

func oneOf[T ~string](text []byte, known ...T) (T, error) {
	word := T(text)
	if !slices.Contains(known, word) {
		return "", fmt.Errorf("%q is not in the protocol", text)
	}
	return word, nil
}
