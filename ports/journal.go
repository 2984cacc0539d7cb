package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Journal receives what the use cases do, for the operator's log and metrics. It never receives a secret, and must not block.
type Journal interface {
	Log(ctx context.Context, e JournalEvent)
}

// JournalEvent is one step of the work on one database.
type JournalEvent struct {
	What        string // "operation.claimed", "operation.succeeded", "allowlist.applied" ...
	DatabaseID  id.DatabaseID
	ServerID    id.ServerID
	ServerName  string
	Host        string         // of the agent
	OperationID id.OperationID // for a role, its set-up or the change
	RoleID      id.RoleID
	WebhookID   id.WebhookID
	DeliveryID  id.DeliveryID
	MailID      id.MailID
	NamespaceID id.NamespaceID
	Kind        string
	RequestID   string
	Epoch       int64
	Took        time.Duration // of a round
	After       time.Duration // how long something was as it is no longer
	// Repeated is how often it happened before without being told. Told says that this is counted already: the event is logged as
	// it is, and otherwise one of many like it.
	Repeated int
	Told     bool
	Routine  bool  // of interest only to who looks for it, unless it went wrong
	Err      error // nil if nothing went wrong
}

// NoJournal drops every event.
type NoJournal struct{}

// Log drops the event.
func (NoJournal) Log(context.Context, JournalEvent) {}
