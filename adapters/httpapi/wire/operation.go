package wire

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Operation is the spec's operation with further fields of this service.
type Operation struct {
	ID       id.OperationID   `json:"id"`
	Type     operation.Kind   `json:"type"`
	Status   operation.Status `json:"status"`
	Stage    string           `json:"stage" example:"dumping"`
	Progress int              `json:"progress" example:"40"`
	// ProgressBytes is there while an operation runs whose agent knows it.
	ProgressBytes *Bytes `json:"progressBytes,omitzero"`
	// Result is that of one that has succeeded. Those of rescues, comparisons and searches are of the customer's data, and null for
	// everybody but the owner.
	Result     *json.RawMessage   `json:"result" description:"of rescues, comparisons and searches, for the owner only"`
	Error      *operation.Failure `json:"error"`
	DatabaseID id.DatabaseID      `json:"databaseId"`
	CreatedAt  time.Time          `json:"createdAt"`
	StartedAt  *time.Time         `json:"startedAt"`
	FinishedAt *time.Time         `json:"finishedAt"`
}

// Bytes is how much is done of the part of an operation that is under way.
type Bytes struct {
	Done  int64 `json:"done" example:"1073741824"`
	Total int64 `json:"total" example:"4294967296"`
}

// OperationWithMessage is the answer to an asynchronous request.
type OperationWithMessage struct {
	Message   string    `json:"message" example:"The backup is queued."`
	Operation Operation `json:"operation"`
}
