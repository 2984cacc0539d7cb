package command

import "github.com/pgherd/pgherd/core/usage"

// AskUsage asks what the agent has seen of its databases' use. The agent looks unasked, and answers from what it has kept.
type AskUsage struct {
	Returns[Used] `json:"-"`
	// After is Next of the answer before, once that is stored, so that what follows comes back: the agent forgets what came before.
	// UsageFromStart asks for all that it has, as does what another agent has answered.
	After string `json:"-" path:"after"`
}

// UsageFromStart asks for all that the agent has.
const UsageFromStart = StorageFromStart

// SeenAtOnce bounds one answer: what was seen of a database takes some 200 bytes.
const SeenAtOnce = 2000

// Used is a part of what the agent has seen, the oldest first. A stretch may come in parts.
type Used struct {
	Stretches []usage.Stretch `json:"stretches"`
	Next      string          `json:"next"`
	More      bool            `json:"more"` // there is another part, after Next
}

// Route implements Question.
func (AskUsage) Route() Route { return Route{Method: "GET", Path: "/v1/usage/{after}"} }

// Check implements Question.
func (q AskUsage) Check() error { return checkPosition(q.After) }
