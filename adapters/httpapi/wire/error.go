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
	*GrantRequired
	*Dependencies
	// Extra are the members that the server adds for a code. A client reads them as those of the two above.
	Extra map[string]any `json:",embed"`
}

// GrantRequired is what CONNECT_GRANT_REQUIRED adds to the error: the statement that the database's owner has to run.
type GrantRequired struct {
	DatabaseName string `json:"databaseName" required:"false" example:"orders"`
	Username     string `json:"username" required:"false" example:"pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_c1"`
	GrantSQL     string `json:"grantSql" required:"false" example:"GRANT CONNECT ON DATABASE \"orders\" TO \"pgh_c1\";"`
}

// Dependencies is what ROLE_DEPENDENCIES adds to the error; Truncated is true if there are more.
type Dependencies struct {
	Dependencies []role.Dependency `json:"dependencies" required:"false"`
	Truncated    bool              `json:"truncated" required:"false"`
}

// BareMaintenance is MAINTENANCE as the routes of extensions answer it.
type BareMaintenance struct {
	Error   fault.Code `json:"error"`
	Message string     `json:"message"`
}
