package command

import (
	"math"

	"github.com/pgherd/pgherd/core/id"
)

// Configure sets what the service wants of a database as a whole; what an earlier one set and this one does not want is taken
// back. It belongs to no operation. It is done once the settings are stored and PgBouncer was told to connect anew: a transaction
// that runs meanwhile goes on under the settings that it began with, and its session is ended afterwards. A lower generation than
// the highest admitted is ReasonStale, also where the same command was done before.
type Configure struct {
	Returns[Configured] `json:"-"`
	DatabaseID          id.DatabaseID `json:"databaseId"`
	Timeouts            *Timeouts     `json:"timeouts"` // nil: the service sets none
	// ReadOnly makes the transactions of customers read-only by default. Each of their sessions can choose otherwise.
	ReadOnly bool `json:"readOnly"`
	// Closed keeps customers out and ends their sessions. SetAccess does not open the database then; once Closed is lifted, the
	// database is as the last SetAccess wants it.
	Closed     bool  `json:"closed"`
	Generation int64 `json:"-"`
}

// Timeouts are the defaults of a database, and of its owner's login there, in milliseconds.
type Timeouts struct {
	StatementMs         int64 `json:"statementMs"`
	LockMs              int64 `json:"lockMs"`
	IdleInTransactionMs int64 `json:"idleInTransactionMs"`
}

// Configured says which database of PostgreSQL has the settings.
type Configured struct {
	DatabaseOID int64 `json:"databaseOid"`
}

// About implements Command.
func (c Configure) About() About {
	return ofDatabase("database.configure", c.DatabaseID, c.Generation)
}

func (c *Configure) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command. PostgreSQL would take a timeout of 0 for none.
func (c Configure) Check() error {
	if t := c.Timeouts; t != nil {
		for _, ms := range []int64{t.StatementMs, t.LockMs, t.IdleInTransactionMs} {
			if ms < 1 || ms > math.MaxInt32 {
				return Refuse(ReasonInvalid, "timeouts: %d ms is none", ms)
			}
		}
	}
	return checkDatabase(c.DatabaseID)
}

// Settings asks for the timeouts that are in force in a database. ReasonNotFound: the server has no such database.
type Settings struct {
	Returns[SettingsInForce] `json:"-"`
	DatabaseID               id.DatabaseID `json:"-" path:"id"`
}

// SettingsInForce are what new sessions of the owner's login begin with in the database, in milliseconds; 0 is no limit.
type SettingsInForce struct {
	DatabaseOID int64 `json:"databaseOid"`
	// Generation is that of the last Configure that was done; 0: there was none.
	Generation          int64 `json:"generation"`
	StatementMs         int64 `json:"statementMs"`
	LockMs              int64 `json:"lockMs"`
	IdleInTransactionMs int64 `json:"idleInTransactionMs"`
	// RoleOverrides are customers' own settings of the three timeouts, and of read-only transactions, for single roles.
	RoleOverrides []RoleOverride `json:"roleOverrides"`
	// Pending is how many sessions still have the settings from before the last Configure.
	Pending int `json:"pending"`
}

// RoleOverride is a setting of one role, for this database or for all, as PostgreSQL's catalog writes it.
type RoleOverride struct {
	Role    string `json:"role"`
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// Route implements Question.
func (Settings) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/settings"} }

// Check implements Question.
func (q Settings) Check() error { return checkDatabase(q.DatabaseID) }
