package command

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// RecoveryWindow asks from when to when a database can be had back by a Backup with At. ReasonNotFound: there is no such
// database.
type RecoveryWindow struct {
	Returns[RecoverableTime] `json:"-"`
	DatabaseID               id.DatabaseID `json:"-" path:"id"`
}

// RecoverableTime is the answer.
type RecoverableTime struct {
	// Archived says that the server keeps an archive. Where it does not, there is nothing else.
	Archived bool            `json:"archived"`
	Window   recovery.Window `json:"window,omitzero"`
}

// Route implements Question.
func (RecoveryWindow) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/recovery-window"}
}

// Check implements Question.
func (q RecoveryWindow) Check() error { return checkDatabase(q.DatabaseID) }

// SetArchiveKey gives an agent the passphrase of its server's archive, which the agent keeps. ReasonConflict: the archive has
// another. ReasonInvalid: the server keeps no archive.
type SetArchiveKey struct {
	Returns[None] `json:"-"`
	Key           string `json:"key"`
}

// Route implements Question.
func (SetArchiveKey) Route() Route { return Route{Method: "POST", Path: "/v1/archive/key"} }

// ArchiveKeyLength is that of a passphrase, in letters and digits.
const ArchiveKeyLength = 52

var archiveKeyPattern = regexp.MustCompile(`^[0-9A-Za-z]{52}$`)

// Archive is what an agent says of the archive of its server.
type Archive struct {
	// KeyMark is that of the key that the agent has; empty while it has none.
	KeyMark string `json:"keyMark"`
}

// ArchiveKeyMark tells keys apart without showing them.
func ArchiveKeyMark(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Check implements Question.
func (q SetArchiveKey) Check() error {
	if !archiveKeyPattern.MatchString(q.Key) {
		return Refuse(ReasonInvalid, "the key must be %d letters and digits", ArchiveKeyLength)
	}
	return nil
}
