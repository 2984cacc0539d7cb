package command

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slowquery"
)

// SlowQueries asks what PostgreSQL has counted of the statements that the logins of a database have run there. ReasonNotFound:
// there is no such database.
type SlowQueries struct {
	Returns[SlowQueryList] `json:"-"`
	DatabaseID             id.DatabaseID   `json:"-" path:"id"`
	Order                  slowquery.Order `json:"-" path:"order"`
}

// SlowQueryList is what slowquery.Top leaves of these statements.
type SlowQueryList struct {
	// Collected says that the server collects statements. Where it does not, there is nothing else.
	Collected bool `json:"collected"`
	// Since is when the server has begun to, or began anew.
	Since time.Time `json:"since,omitzero"`
	// Evicted says that the server has since forgotten statements, of whichever database, to make room for others.
	Evicted    bool                  `json:"evicted,omitempty"`
	Statements []slowquery.Statement `json:"statements,omitempty"`
}

// Route implements Question.
func (SlowQueries) Route() Route {
	return Route{Method: "GET", Path: "/v1/databases/{id}/slow-queries/{order}"}
}

// Check implements Question.
func (q SlowQueries) Check() error {
	if !slices.Contains(slowquery.Orders, q.Order) {
		return Refuse(ReasonInvalid, "order is none of the protocol")
	}
	return checkDatabase(q.DatabaseID)
}
