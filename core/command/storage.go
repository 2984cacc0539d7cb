package command

import (
	"regexp"

	"github.com/pgherd/pgherd/core/id"
)

// StorageUse asks for the sizes of the databases that have changed. The agent measures unasked, those in which something was
// written, and answers from what it has measured.
type StorageUse struct {
	Returns[StorageUsed] `json:"-"`
	// After is Next of the answer before, so that only what has changed since comes back; StorageFromStart asks for everything,
	// as does what another agent has answered.
	After string `json:"-" path:"after"`
}

// StorageFromStart asks for all sizes that are known.
const StorageFromStart = "0"

// UsesAtOnce bounds one answer: each size takes some 80 bytes.
const UsesAtOnce = 1000

// StorageUsed is a part of the sizes that have changed, in the order of their changes.
type StorageUsed struct {
	Databases []DatabaseUse `json:"databases"`
	Next      string        `json:"next"`
	More      bool          `json:"more"` // there is another part, after Next
}

// DatabaseUse is the size of a database on disk.
type DatabaseUse struct {
	DatabaseID id.DatabaseID `json:"databaseId"`
	Bytes      int64         `json:"bytes"`
}

// Route implements Question.
func (StorageUse) Route() Route { return Route{Method: "GET", Path: "/v1/storage/{after}"} }

var positionPattern = regexp.MustCompile(`^[0-9A-Za-z.]{1,64}$`)

// Check implements Question.
func (q StorageUse) Check() error { return checkPosition(q.After) }

func checkPosition(after string) error {
	if !positionPattern.MatchString(after) {
		return Refuse(ReasonInvalid, "after is no position that an agent has named")
	}
	return nil
}
