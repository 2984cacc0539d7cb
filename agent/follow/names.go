// Package follow has a database follow one of another server, by PostgreSQL's logical replication, until it can take its place.
//
// The source keeps the changes of the database, from the snapshot on that its dump is made in: in a replication slot, of the
// tables of a publication, for a login. The target has loaded that dump, and has a subscription that copies nothing. All four are
// named after the operation. What is made for them is in the ledger before it is made, and until it is gone.
package follow

import (
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// NameOf is what the login, the slot, the publication and the subscription of an operation are called.
func NameOf(op id.OperationID) string { return setup.MovePrefix + id.Compact(op) }

// mark is the comment on the login, which says that it is ours.
const mark joblogin.Mark = "pgherd move login "
