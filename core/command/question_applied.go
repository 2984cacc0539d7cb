package command

import "github.com/pgherd/pgherd/core/id"

// AskApplied asks which generations of what belongs to no operation, settings and allowlists, the server has, so that the control
// plane sees where a server was restored from a backup that is older than what it was told.
type AskApplied struct {
	Returns[Applied] `json:"-"`
	// After is the last database of the part before, or AppliedFromStart. The order is that of the IDs.
	After id.DatabaseID `json:"-" path:"after"`
}

// AppliedFromStart asks for the first part.
const AppliedFromStart id.DatabaseID = "0"

// AppliedAtOnce bounds one part: each database takes some 150 bytes.
const AppliedAtOnce = 1000

// Applied is a part of the server's databases.
type Applied struct {
	Databases []AppliedIn `json:"databases"`
	More      bool        `json:"more"` // there is another part, after the last one's
}

// AppliedIn is one database. A kind of command that was never done there is missing.
type AppliedIn struct {
	DatabaseID  id.DatabaseID  `json:"databaseId"`
	Generations map[Kind]int64 `json:"generations"`
}

// Route implements Question.
func (AskApplied) Route() Route { return Route{Method: "GET", Path: "/v1/applied/{after}"} }

// Check implements Question.
func (q AskApplied) Check() error {
	if q.After == AppliedFromStart {
		return nil
	}
	return checkDatabase(q.After)
}
