package command

import "github.com/pgherd/pgherd/core/id"

// Close ends the operation's work on the server, undoes what it left unfinished, and makes the agent refuse every later command
// of it. If the operation had already completed a database or a backup, Close is refused with ReasonCompleted: that can no
// longer be undone. A backup that is to be verified is complete when it is. One that was made under another step than that of its
// kind is a part of something larger, as is such a database: they complete nothing, and are undone. A restore is complete when
// its databases are renamed; before that its copy is dropped, and the gates of the live database are left as they were.
type Close struct {
	Returns[None] `json:"-"`
	OperationID   id.OperationID `json:"-"`
}

// About implements Command.
func (c Close) About() About {
	return About{Kind: "operation.close", Resource: OperationResource(c.OperationID), Generation: 1}
}

func (c *Close) receive(e Envelope) { c.OperationID = e.OperationID }

// Check implements Command.
func (Close) Check() error { return nil }

// OperationResource names an operation.
func OperationResource(op id.OperationID) string { return "operation/" + string(op) }
