package wire

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
)

// Error is the answer to every request that is refused or fails.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says what is wrong. Message is for people, and may change.
type ErrorBody struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details []fault.Detail `json:"details"`
	// Extra are the members that some codes add: those of GrantRequired and Dependencies.
	Extra map[string]any `json:",embed"`
}

// GrantRequired is what CONNECT_GRANT_REQUIRED adds to the error: the statement that the database's owner has to run.
type GrantRequired struct {
	DatabaseName string `json:"databaseName"`
	Username     string `json:"username"`
	GrantSQL     string `json:"grantSql"`
}

// Dependencies is what ROLE_DEPENDENCIES adds to the error; Truncated is true if there are more.
type Dependencies struct {
	Dependencies []role.Dependency `json:"dependencies"`
	Truncated    bool              `json:"truncated"`
}

// BareMaintenance is MAINTENANCE as the routes of extensions answer it.
type BareMaintenance struct {
	Error   fault.Code `json:"error"`
	Message string     `json:"message"`
}
