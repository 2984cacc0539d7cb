package wire

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// QueryTimeouts is what is wanted of a database's query timeouts, and what is so. DatabaseOID, Current and RoleOverrides are what
// the database server reports; they are null where it does not in time. Operation is the last change.
type QueryTimeouts struct {
	DatabaseOID      *int64                 `json:"databaseOid" description:"of the database in PostgreSQL" example:"16385"`
	Current          *TimeoutValues         `json:"current" description:"what new sessions of the owner login begin with"`
	DesiredProfile   querytimeout.Profile   `json:"desiredProfile"`
	EffectiveProfile querytimeout.Profile   `json:"effectiveProfile" description:"the last profile that the server has confirmed"`
	Operation        *QueryTimeoutChange    `json:"operation" description:"the last change"`
	Generation       int64                  `json:"generation" description:"grows with every change of the settings" example:"3"`
	PolicyVersion    int                    `json:"policyVersion" description:"version of the profiles' values" example:"1"`
	Profiles         []QueryTimeoutProfile  `json:"profiles" description:"those that can be chosen"`
	RoleOverrides    *[]RoleTimeoutOverride `json:"roleOverrides" description:"settings of single roles, which are kept"`
}

// TimeoutValues are in milliseconds; 0 means no limit.
type TimeoutValues struct {
	StatementTimeoutMs         int64 `json:"statementTimeoutMs" example:"30000"`
	LockTimeoutMs              int64 `json:"lockTimeoutMs" example:"3000"`
	IdleInTransactionTimeoutMs int64 `json:"idleInTransactionTimeoutMs" example:"15000"`
}

// QueryTimeoutProfile is a profile with its values.
type QueryTimeoutProfile struct {
	Profile querytimeout.Profile `json:"profile" enum:"standard,balanced,short"`
	TimeoutValues
}

// QueryTimeoutChange is a change of the profile. While it is open, it keeps other work on the database away.
type QueryTimeoutChange struct {
	ID     id.OperationID   `json:"id"`
	Status operation.Status `json:"status"`
}

// RoleTimeoutOverride is a setting that a role has of its own, as PostgreSQL writes it.
type RoleTimeoutOverride struct {
	Role    string `json:"role" example:"pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_ro"`
	Setting string `json:"setting" example:"statement_timeout"`
	Value   string `json:"value" example:"5min"`
}

// SetQueryTimeouts chooses a profile.
type SetQueryTimeouts struct {
	Profile querytimeout.Profile `json:"profile" enum:"standard,balanced,short"`
}
