package command

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// EnsureOverlay makes the two group roles of a database with a single login, and has them granted what the access profiles
// promise: on what the owner has, in every schema that it owns or may use, and by default privileges on what it makes later.
// Customers keep working: where a customer holds a lock, the agent tries again.
//
// ReasonUnfinished: some of it is left. It may also wait for a transaction that made tables before the default privileges, and
// has not ended. ReasonNameTaken: the server has a role of that name that this service did not make. ReasonInvalid: the database
// has managed roles.
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

// ReadOutcome asks whether the agent has done a step of an operation, whose answer may have been lost, and looks at the role that
// it is about, as one that was made so and admitted with this verifier. It changes nothing, and waits for a command that is at
// work on the database. ReasonUnavailable: that takes too long.
type ReadOutcome struct {
	Returns[Outcome] `json:"-"`
	DatabaseID       id.DatabaseID      `json:"databaseId"`
	Username         string             `json:"username"` // of the role
	OperationID      id.OperationID     `json:"operationId"`
	Step             string             `json:"step"`
	AccessProfile    role.AccessProfile `json:"accessProfile"`
	ConnectionLimit  int                `json:"connectionLimit"`
	Verifier         string             `json:"verifier,omitempty"` // empty: the role shall have no password
}

// Outcome is what is known of a step, and the state of its role.
type Outcome struct {
	Done bool       `json:"done"` // one that is not done may have been begun
	Role role.Found `json:"role"`
}

// Resource is that of the commands about the login.
func (q ReadOutcome) Resource() string { return ofLogin(q.Step, q.DatabaseID, q.Username, 0).Resource }

// Route implements Question.
func (ReadOutcome) Route() Route { return Route{Method: "POST", Path: "/v1/logins/outcome"} }

// Check implements Question.
func (q ReadOutcome) Check() error {
	if _, err := id.Parse[id.OperationID](string(q.OperationID)); err != nil || q.Step == "" {
		return Refuse(ReasonInvalid, "operationId or step cannot be")
	}
	if err := checkRole(q.DatabaseID, q.Username); err != nil {
		return err
	}
	if q.Verifier != "" && !verifierPattern.MatchString(q.Verifier) {
		return Refuse(ReasonInvalid, "verifier is none of SCRAM-SHA-256")
	}
	return checkGrants(q.AccessProfile, q.ConnectionLimit)
}
