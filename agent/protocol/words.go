package protocol

// The reasons of a Refusal. They are the words of ports.AgentReason; a test of adapters/agentclient keeps them equal.
const (
	ReasonStale       = "stale"
	ReasonFenced      = "fenced"
	ReasonConflict    = "conflict"
	ReasonClosed      = "closed"
	ReasonCompleted   = "completed"
	ReasonNameTaken   = "name_taken"
	ReasonNotFound    = "not_found"
	ReasonStorageFull = "storage_full"
	ReasonUnavailable = "unavailable"
	ReasonNoRoute     = "no_route"
	ReasonInvalid     = "invalid"
	ReasonFailed      = "failed"

	ReasonConnectRequired = "connect_required"
	ReasonDatabaseClosed  = "database_closed"
)

// The states of a BackupReport. They are the words of ports.BackupState; the same test keeps them equal.
const (
	BackupRunning     = "running"
	BackupDone        = "done"
	BackupNotVerified = "not_verified"
	BackupFailed      = "failed"
)

// DatabaseResource names a database in Command.Resource.
func DatabaseResource(databaseID string) string { return "database/" + databaseID }

// OperationResource names an operation in Command.Resource: operation.close is about no database.
func OperationResource(operationID string) string { return "operation/" + operationID }
