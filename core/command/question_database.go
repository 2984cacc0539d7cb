package command

import (
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// DatabaseSize asks for the size of a database on disk.
type DatabaseSize struct {
	Returns[Size] `json:"-"`
	DatabaseID    id.DatabaseID `json:"-" path:"id"`
}

// Size is a size in bytes.
type Size struct {
	Bytes int64 `json:"bytes"`
}

// Route implements Question.
func (DatabaseSize) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/size"} }

// Check implements Question.
func (q DatabaseSize) Check() error { return checkDatabase(q.DatabaseID) }

// InspectLogin compares a login's password on the server with a verifier.
type InspectLogin struct {
	Returns[LoginState] `json:"-"`
	DatabaseID          id.DatabaseID `json:"databaseId"`
	Username            string        `json:"username"`
	Verifier            string        `json:"verifier"`
}

// LoginState is the state of a login.
type LoginState struct {
	Condition LoginCondition `json:"condition"`
}

// LoginCondition is the state of a login on the server. That Configure keeps its database closed does not count.
type LoginCondition string

// The conditions.
const (
	LoginInForce LoginCondition = "in_force" // can log in, with the password of the verifier
	LoginDrifted LoginCondition = "drifted"  // has another password, or none
	LoginShut    LoginCondition = "shut"     // has the password, but may not log in
	LoginAbsent  LoginCondition = "absent"   // the server has no such login made by this service
)

// UnmarshalText refuses an unknown condition.
func (c *LoginCondition) UnmarshalText(text []byte) (err error) {
	*c, err = oneOf(text, LoginInForce, LoginDrifted, LoginShut, LoginAbsent)
	return err
}

// Route implements Question.
func (InspectLogin) Route() Route { return Route{Method: "POST", Path: "/v1/logins/inspect"} }

// Check implements Question.
func (q InspectLogin) Check() error {
	if checkDatabase(q.DatabaseID) != nil || !usernamePattern.MatchString(q.Username) || !verifierPattern.MatchString(q.Verifier) {
		return Refuse(ReasonInvalid, "databaseId, username or verifier cannot be")
	}
	return nil
}

// SetAccounts names the accounts of some databases, which the agent needs to know which account uses more of the server than
// others. EnsureDatabase has told it already; this corrects what differs. Databases that are not named keep their account, and
// those that the server does not have are passed over, so a long list may come in parts.
type SetAccounts struct {
	Returns[None] `json:"-"`
	Databases     []database.Ownership `json:"databases"`
}

// AccountsAtOnce keeps one part of such a list well below the most that an agent reads: each takes some 110 bytes.
const AccountsAtOnce = 2000

// Route implements Question.
func (SetAccounts) Route() Route { return Route{Method: "PUT", Path: "/v1/accounts"} }

// Check implements Question.
func (q SetAccounts) Check() error {
	for i, d := range q.Databases {
		if checkDatabase(d.DatabaseID) != nil {
			return Refuse(ReasonInvalid, "databases[%d].databaseId must be a UUID", i)
		}
		if _, err := id.Parse[id.AccountID](string(d.AccountID)); err != nil {
			return Refuse(ReasonInvalid, "databases[%d].accountId must be a UUID", i)
		}
	}
	return nil
}
