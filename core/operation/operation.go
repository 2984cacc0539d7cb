// Package operation holds asynchronous work: its kinds, its status machine, and the leases that let many workers share one
// queue without two of them ever doing the same work (spec, section "Operation").
package operation

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Operation is one piece of work on one database. At most one is open per database, and beside it at most one that changes a
// login.
type Operation struct {
	ID         id.OperationID  `db:"id"`
	AccountID  id.AccountID    `db:"account_id"`
	DatabaseID id.DatabaseID   `db:"database_id"`
	ServerID   id.ServerID     `db:"server_id"` // of the database
	OtherID    id.ServerID     `db:"other_id"`  // of a move: where it comes to, then what it has left; of a rebuild: what is gone
	Kind       Kind            `db:"kind"`
	Logins     bool            `db:"logins"` // Spec.Logins of its kind
	Status     Status          `db:"status"`
	Stage      string          `db:"stage"`       // informational
	Progress   int             `db:"progress"`    // 0-100, of bytes or tables, never of time
	BytesDone  int64           `db:"bytes_done"`  // of BytesTotal: the part that is under way
	BytesTotal int64           `db:"bytes_total"` // 0: it is not known
	Input      json.RawMessage `db:"input"`
	Result     json.RawMessage `db:"result"` // null until it has succeeded
	// What of the input and the result has or is of the data in the database: encrypted under InputContext and ResultContext; nil:
	// nothing is. The input is erased when the operation ends. Only who may start such an operation is shown the result.
	SealedInput  []byte     `db:"sealed_input"`
	SealedResult []byte     `db:"sealed_result"`
	ErrorCode    fault.Code `db:"error_code"` // empty unless it failed
	ErrorText    string     `db:"error_text"`
	audit.Actor
	RequestID  string     `db:"request_id"` // of the request that asked for it
	CreatedAt  time.Time  `db:"created_at"`
	StartedAt  *time.Time `db:"started_at"`
	FinishedAt *time.Time `db:"finished_at"`

	CancelRequested bool `db:"cancel_requested"`
	Lease
}

// InputContext binds SealedInput to its operation.
func (o Operation) InputContext() string { return "operation-input/" + string(o.ID) }

// ResultContext binds SealedResult to its operation.
func (o Operation) ResultContext() string { return "operation-result/" + string(o.ID) }

// Failure is the error of a failed operation, as users see it.
type Failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// Failure returns the error of a failed operation, and nil for every other one.
func (o Operation) Failure() *Failure {
	if o.ErrorCode == "" {
		return nil
	}
	return &Failure{Code: o.ErrorCode, Message: o.ErrorText}
}
