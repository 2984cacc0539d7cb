package ports

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
)

// Operations keeps operations and is the queue of those to be worked on.
type Operations interface {
	// Add stores an operation, queued or already claimed, and wakes workers when the transaction commits. It returns
	// DATABASE_STATE_CONFLICT if the database has an open operation; one that changes a login counts beside the others.
	Add(ctx context.Context, o operation.Operation) error
	// Get returns an operation; ErrNoRow when there is none.
	Get(ctx context.Context, op id.OperationID) (operation.Operation, error)
	// Lock returns an operation and locks it until the transaction ends.
	Lock(ctx context.Context, op id.OperationID) (operation.Operation, error)
	// Open returns the open operation of a database, beside one that changes a login; ErrNoRow when none is open.
	Open(ctx context.Context, db id.DatabaseID) (operation.Operation, error)
	// Refused counts, for every server, the open operations of a kind that have an error, because the server refuses them; the
	// oldest by its creation.
	Refused(ctx context.Context, kind operation.Kind) ([]ServerTally, error)
	// List returns the operations of a database that are of the given kinds, newest first.
	List(ctx context.Context, db id.DatabaseID, kinds []operation.Kind, p Page) ([]operation.Operation, error)
	// Find lists operations of all databases, newest first.
	Find(ctx context.Context, f OperationFilter, p Page) ([]FoundOperation, error)
	// Hasten makes an open operation due, where it would be so later; ErrNoRow for one that is final or does not exist.
	Hasten(ctx context.Context, op id.OperationID, now time.Time) error
	// ClaimNext takes a claimable operation, as operation.Claimed leaves it; ErrNoRow when it finds none. It is fair: of the
	// accounts with claimable operations it takes the one that was served longest ago, of its servers and kinds the one that was
	// served longest ago, and of those operations the one that has waited longest. Two workers never claim the same one. It may note
	// that there is nothing, for later claims: commit also where it finds none.
	ClaimNext(ctx context.Context, c OperationClaim) (operation.Operation, error)
	// SaveLeased writes every field that can change, provided that the stored epoch is still o.Epoch and the operation is not
	// final; ErrLeaseLost otherwise. It does not overwrite a CancelRequested that was stored in the meantime, nor put off what was
	// then made due. Of the sealed input it erases what is stored once the operation is final, and else leaves it alone: it may have
	// been encrypted again meanwhile.
	SaveLeased(ctx context.Context, o operation.Operation) error
	// RequestCancel stores CancelRequested, and NotBefore where it is earlier, or the canceled status for an operation that is still
	// queued, without its sealed input.
	RequestCancel(ctx context.Context, o operation.Operation) error
}

// OperationFilter says which operations are looked for: empty fields admit all.
type OperationFilter struct {
	DatabaseID id.DatabaseID
	ServerID   id.ServerID
	Kind       operation.Kind
	Statuses   []operation.Status
}

// FoundOperation is an operation with the names of its database and its server; empty where they are no more.
type FoundOperation struct {
	operation.Operation
	DatabaseName string `db:"database_name"`
	ServerName   string `db:"server_name"`
}

// OperationClaim is a worker's request for work.
type OperationClaim struct {
	Owner string
	Now   time.Time
	Hold  time.Duration
	Kinds []operation.Kind // that the worker knows; it gets no other
	// NotOf and NotOn are accounts and servers of which the worker has enough in hand.
	NotOf []id.AccountID
	NotOn []id.ServerID
	// Only, where it is set, is the only operation to claim: due or not, but not while another worker holds it.
	Only id.OperationID
}

// Idempotency keeps the keys of requests.
type Idempotency interface {
	// Claim stores and returns the record if its key is new; otherwise it returns the stored record. It waits for a concurrent
	// transaction that stores the same key.
	Claim(ctx context.Context, r idempotency.Record) (stored idempotency.Record, fresh bool, err error)
	// Get returns the record of a key; ErrNoRow when the key is new.
	Get(ctx context.Context, account id.AccountID, route string, key idempotency.Key) (idempotency.Record, error)
}

// Audit keeps the activity log.
type Audit interface {
	Add(ctx context.Context, e audit.Entry) error
	// List returns the entries of a database, newest first.
	List(ctx context.Context, db id.DatabaseID, p Page) ([]audit.Entry, error)
	// OfInstallation returns the entries about no account and no database, newest first.
	OfInstallation(ctx context.Context, p Page) ([]audit.Entry, error)
	// OfAccount returns the entries about an account and all its databases, newest first.
	OfAccount(ctx context.Context, a id.AccountID, p Page) ([]audit.Entry, error)
}

// Outbox keeps events until they are delivered. An event is added in the transaction that makes its operation final.
type Outbox interface {
	Add(ctx context.Context, e OutboxEvent) error
	// Forget removes up to limit deliveries that became final before the given time, with their attempts, and up to limit events
	// created before it that were taken and have no deliveries left.
	Forget(ctx context.Context, before time.Time, limit int) error
}

// OutboxEvent is an event with the body that each delivery sends.
type OutboxEvent struct {
	ID          id.EventID      `db:"id"`
	AccountID   id.AccountID    `db:"account_id"`
	DatabaseID  id.DatabaseID   `db:"database_id"`
	OperationID id.OperationID  `db:"operation_id"`
	RequestID   string          `db:"request_id"` // which asked for the operation; empty without one
	Name        event.Name      `db:"name"`
	Payload     json.RawMessage `db:"payload"`
	CreatedAt   time.Time       `db:"created_at"`
}
