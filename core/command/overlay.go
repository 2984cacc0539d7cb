package command

import "github.com/pgherd/pgherd/core/id"

// EnsureOverlay makes the two group roles of a database with a single login, and has them granted what the access profiles
// promise: on what the owner has, in every schema that it may use, and by default privileges on what it makes later. Customers
// keep working: a lock that one of them holds is left alone, and tried again.
//
// ReasonUnavailable: some of it is left; it goes on when the command is sent again. It may also wait for a transaction that made
// tables before the default privileges, and has not ended. ReasonNameTaken: the server has a role of that name that this service
// did not make. ReasonInvalid: the database has managed roles.
type EnsureOverlay struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
}

// About implements Command.
func (c EnsureOverlay) About() About {
	about := ofDatabase("overlay.ensure", c.DatabaseID, 1)
	about.Resource += "/overlay" // work on the database itself does not wait for it
	return about
}

// Check implements Command.
func (c EnsureOverlay) Check() error { return checkDatabase(c.DatabaseID) }

// ReadOutcome asks whether the agent has done a step of an operation, whose answer may have been lost. It does nothing.
type ReadOutcome struct {
	Returns[Outcome] `json:"-"`
	DatabaseID       id.DatabaseID  `json:"databaseId"`
	Username         string         `json:"username"` // of the login that the step is about
	OperationID      id.OperationID `json:"operationId"`
	Step             string         `json:"step"`
}

// Outcome is what is known of a step. One that is not done may have been begun.
type Outcome struct {
	Done bool `json:"done"`
}

// Resource is that of the commands about the login.
func (q ReadOutcome) Resource() string { return ofLogin(q.Step, q.DatabaseID, q.Username, 0).Resource }

// Route implements Question.
func (ReadOutcome) Route() Route {
	return Route{Method: "POST", Path: "/v1/logins/outcome", Later: true}
}

// Check implements Question.
func (q ReadOutcome) Check() error {
	if _, err := id.Parse[id.OperationID](string(q.OperationID)); err != nil || q.Step == "" {
		return Refuse(ReasonInvalid, "operationId or step cannot be")
	}
	return checkRole(q.DatabaseID, q.Username)
}
