package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
)

// Journal is told what the use cases do, for the operator's log and metrics. It never receives a secret, and must not block.
type Journal interface {
	Record(ctx context.Context, e JournalEvent)
}

// JournalEvent is one step of the work on one database.
type JournalEvent struct {
	What        string // "operation.claimed", "operation.succeeded", "allowlist.applied" ...
	DatabaseID  id.DatabaseID
	OperationID id.OperationID // for a role, its set-up or the change
	RoleID      id.RoleID
	WebhookID   id.WebhookID
	DeliveryID  id.DeliveryID
	Kind        string
	RequestID   string
	Epoch       int64
	Err         error // nil if nothing went wrong
}

// NoJournal drops every event.
type NoJournal struct{}

// Record drops the event.
func (NoJournal) Record(context.Context, JournalEvent) {}
