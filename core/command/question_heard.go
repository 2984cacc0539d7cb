package command

import "github.com/pgherd/pgherd/core/id"

// AskHeard asks which operations the agent has heard of since somebody has vouched for what it had heard. Metadata that lack one
// of them, or the last one of before, are those of an earlier moment, or of another installation.
type AskHeard struct {
	Returns[Heard] `json:"-"`
}

// HeardAtOnce bounds the list.
const HeardAtOnce = 1000

// Heard is what an agent remembers of the last 29 days: the metadata keep operations for longer. What is sent under no epoch is
// no operation of the metadata, and left out.
type Heard struct {
	// Last is the operation that was vouched for last; empty where none was.
	Last       id.OperationID   `json:"last,omitempty"`
	Operations []id.OperationID `json:"operations,omitempty"` // that nobody has vouched for
	More       bool             `json:"more,omitempty"`       // there are others
}

// Route implements Question.
func (AskHeard) Route() Route { return Route{Method: "GET", Path: "/v1/operations"} }

// Check implements Question.
func (AskHeard) Check() error { return nil }

// Vouch says that the metadata have operations that the agent has heard of. From the first time on, and until All, the agent
// removes nothing of a database with an operation that nobody has vouched for, neither a backup nor, but by that operation, the
// database itself: ReasonBehind.
type Vouch struct {
	Returns[None] `json:"-"`
	Operations    []id.OperationID `json:"operations,omitempty"`
	// All has the agent forget what it has heard: an operator has decided that these metadata count, whatever they lack.
	All bool `json:"all,omitempty"`
}

// Route implements Question.
func (Vouch) Route() Route { return Route{Method: "PUT", Path: "/v1/operations"} }

// Check implements Question.
func (q Vouch) Check() error {
	for _, o := range q.Operations {
		if _, err := id.Parse[id.OperationID](string(o)); err != nil {
			return Refuse(ReasonInvalid, "operations must be UUIDs")
		}
	}
	return nil
}
