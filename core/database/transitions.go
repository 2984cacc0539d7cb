package database

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of a database. After deleting, a tombstone is left and the record is gone.
type Status string

// The statuses.
const (
	Creating Status = "creating" // being created; nobody can log in
	Active   Status = "active"   // customers can log in
	Stopped  Status = "stopped"  // complete, but customers cannot log in
	Deleting Status = "deleting" // closed for customers; a delete operation is open
	Error    Status = "error"    // creation failed and its leftovers are not yet removed, or nobody knows who gets in
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Creating, Active, Stopped, Deleting, Error}

// Values lists them for the API's description.
func (Status) Values() []Status { return Statuses }

// Event is what happens to a database.
type Event string

// The events.
const (
	Created         Event = "created"           // the create flow proved a log-in
	CreateFailed    Event = "create_failed"     // the create flow was refused for good
	FoundWhole      Event = "found_whole"       // reconciliation proved a log-in
	Start           Event = "start"             // lifecycle
	Stop            Event = "stop"              // lifecycle
	Restart         Event = "restart"           // lifecycle
	AccessLost      Event = "access_lost"       // a lifecycle action was refused for good, and so was undoing it
	Delete          Event = "delete"            // a delete operation begins
	ReopenAsActive  Event = "reopen_as_active"  // the operation failed and was undone; it was active before
	ReopenAsStopped Event = "reopen_as_stopped" // the same; it was stopped before
	ReopenAsError   Event = "reopen_as_error"   // the same; it was in error before
	Backup          Event = "backup"            // a backup begins
	Configure       Event = "configure"         // environment, allowlist, query timeouts
	Restore         Event = "restore"           // a restore begins
)

// Events lists every event in the order of the docs.
var Events = []Event{
	Created, CreateFailed, FoundWhole, Start, Stop, Restart, AccessLost, Delete, ReopenAsActive, ReopenAsStopped, ReopenAsError,
	Backup, Configure, Restore,
}

// Effects of the table.
const (
	OpenAccess  = "open access"
	CloseAccess = "close access"
	Disconnect  = "disconnect"
)

var (
	to       = machine.To[Status]
	conflict = machine.Refuse[Status](fault.DatabaseStateConflict)
)

// Transitions is the status machine.
var Transitions = machine.Table[Status, Event]{
	Creating: {
		Created: to(Active), CreateFailed: to(Error), FoundWhole: conflict,
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: conflict,
		Delete: conflict, ReopenAsActive: conflict, ReopenAsStopped: conflict, ReopenAsError: conflict,
		Backup: conflict, Configure: conflict, Restore: conflict,
	},
	Active: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: to(Active), Stop: to(Stopped, CloseAccess, Disconnect), Restart: to(Active, Disconnect), AccessLost: to(Error),
		Delete:         to(Deleting, CloseAccess, Disconnect),
		ReopenAsActive: conflict, ReopenAsStopped: conflict, ReopenAsError: conflict,
		Backup: to(Active), Configure: to(Active), Restore: to(Active),
	},
	Stopped: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: to(Active, OpenAccess), Stop: to(Stopped), Restart: conflict, AccessLost: to(Error),
		Delete:         to(Deleting),
		ReopenAsActive: conflict, ReopenAsStopped: conflict, ReopenAsError: conflict,
		Backup: to(Stopped), Configure: to(Stopped), Restore: to(Stopped),
	},
	Deleting: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: conflict, Delete: conflict,
		ReopenAsActive: to(Active, OpenAccess), ReopenAsStopped: to(Stopped), ReopenAsError: to(Error),
		Backup: conflict, Configure: conflict, Restore: conflict,
	},
	Error: {
		Created: conflict, CreateFailed: to(Error), FoundWhole: to(Active),
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: to(Error),
		Delete:         to(Deleting),
		ReopenAsActive: to(Active), ReopenAsStopped: to(Stopped), ReopenAsError: conflict,
		Backup: conflict, Configure: conflict, Restore: conflict,
	},
}

// Decide applies an event; a refusal is DATABASE_STATE_CONFLICT.
func (s Status) Decide(e Event) (machine.Cell[Status], error) { return Transitions.Decide(s, e) }

// ParseLifecycle accepts the three actions of the lifecycle route.
func ParseLifecycle(s string) (Event, error) { return fault.OneOf("action", s, Start, Stop, Restart) }
