package querytimeout

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// UnderWay is what is being done to a database; an empty ID means nothing.
type UnderWay struct {
	Change      id.OperationID // a change of its query timeouts
	Operation   id.OperationID // any other operation
	LoginChange id.OperationID // a change of one of its logins
}

// Begin decides whether a change may begin. QUERY_TIMEOUT_CONFLICT: another one is open. DATABASE_STATE_CONFLICT: other work is.
func (u UnderWay) Begin() error {
	switch {
	case u.Change != "":
		return fault.New(fault.QueryTimeoutConflict, "another change of the query timeouts is open: operation %s", u.Change)
	case u.Operation != "":
		return fault.New(fault.DatabaseStateConflict, "the database has an open operation: %s", u.Operation)
	case u.LoginChange != "":
		return fault.New(fault.DatabaseStateConflict, "a change of a login of the database is unfinished: operation %s", u.LoginChange)
	}
	return nil
}
