package wire

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Operation is the spec's operation with further fields of this service.
type Operation struct {
	ID         id.OperationID     `json:"id"`
	Type       operation.Kind     `json:"type"`
	Status     operation.Status   `json:"status"`
	Stage      string             `json:"stage" example:"dumping"`
	Progress   int                `json:"progress" example:"40"`
	Result     *json.RawMessage   `json:"result"`
	Error      *operation.Failure `json:"error"`
	DatabaseID id.DatabaseID      `json:"databaseId"`
	CreatedAt  time.Time          `json:"createdAt"`
	StartedAt  *time.Time         `json:"startedAt"`
	FinishedAt *time.Time         `json:"finishedAt"`
}

// OperationWithMessage is the answer to an asynchronous request.
type OperationWithMessage struct {
	Message   string    `json:"message" example:"The backup is queued."`
	Operation Operation `json:"operation"`
}
