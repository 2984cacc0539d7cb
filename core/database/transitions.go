package database

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of a database. One that is deleted or being purged is no database of the API any more: its record stays,
// with its name and its place on the server, until the purge has removed everything.
type Status string

// The statuses.
const (
	Creating Status = "creating" // being created; logins are closed
	Active   Status = "active"   // customers can log in
	Stopped  Status = "stopped"  // complete, but customers cannot log in
	Deleting Status = "deleting" // closed for customers; a delete operation is open
	Error    Status = "error"    // creation failed and its leftovers are not yet removed, or nobody knows who gets in
	Deleted  Status = "deleted"  // isolated on its server; it can be recovered until it is purged
	Purging  Status = "purging"  // everything of it is being removed for good
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Creating, Active, Stopped, Deleting, Error, Deleted, Purging}

// Values lists those that the API shows, for its description.
func (Status) Values() []Status { return []Status{Creating, Active, Stopped, Deleting, Error} }

// Gone reports whether the API no longer knows the database but as a deleted one.
func (s Status) Gone() bool { return s == Deleted || s == Purging }

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
	ReopenAsActive  Event = "reopen_as_active"  // the operation failed and was undone, or was taken back; it was active before
	ReopenAsStopped Event = "reopen_as_stopped" // the same; it was stopped before
	ReopenAsError   Event = "reopen_as_error"   // the same; it was in error before
	Backup          Event = "backup"            // a backup begins
	Configure       Event = "configure"         // environment, allowlist, query timeouts
	Restore         Event = "restore"           // a restore begins
	Isolate         Event = "isolate"           // the delete operation has isolated it
	Recover         Event = "recover"           // a recovery begins
	Purge           Event = "purge"             // its purge begins
)

// Events lists every event in the order of the docs.
var Events = []Event{
	Created, CreateFailed, FoundWhole, Start, Stop, Restart, AccessLost, Delete, ReopenAsActive, ReopenAsStopped, ReopenAsError,
	Backup, Configure, Restore, Isolate, Recover, Purge,
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
		Isolate: conflict, Recover: conflict, Purge: conflict,
	},
	Active: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: to(Active), Stop: to(Stopped, CloseAccess, Disconnect), Restart: to(Active, Disconnect), AccessLost: to(Error),
		Delete:         to(Deleting, CloseAccess, Disconnect),
		ReopenAsActive: conflict, ReopenAsStopped: conflict, ReopenAsError: conflict,
		Backup: to(Active), Configure: to(Active), Restore: to(Active),
		Isolate: conflict, Recover: conflict, Purge: conflict,
	},
	Stopped: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: to(Active, OpenAccess), Stop: to(Stopped), Restart: conflict, AccessLost: to(Error),
		Delete:         to(Deleting),
		ReopenAsActive: conflict, ReopenAsStopped: conflict, ReopenAsError: conflict,
		Backup: to(Stopped), Configure: to(Stopped), Restore: to(Stopped),
		Isolate: conflict, Recover: conflict, Purge: conflict,
	},
	Deleting: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: conflict, Delete: conflict,
		ReopenAsActive: to(Active, OpenAccess), ReopenAsStopped: to(Stopped), ReopenAsError: to(Error),
		Backup: conflict, Configure: conflict, Restore: conflict,
		Isolate: to(Deleted), Recover: conflict, Purge: conflict,
	},
	Error: {
		Created: conflict, CreateFailed: to(Error), FoundWhole: to(Active),
		Start: conflict, Stop: to(Stopped, CloseAccess, Disconnect), Restart: conflict, AccessLost: to(Error),
		Delete:         to(Deleting),
		ReopenAsActive: to(Active), ReopenAsStopped: to(Stopped), ReopenAsError: conflict,
		Backup: conflict, Configure: conflict, Restore: conflict,
		Isolate: conflict, Recover: conflict, Purge: conflict,
	},
	Deleted: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: conflict, Delete: conflict,
		ReopenAsActive: to(Active, OpenAccess), ReopenAsStopped: to(Stopped), ReopenAsError: to(Error),
		Backup: conflict, Configure: conflict, Restore: conflict,
		Isolate: conflict, Recover: to(Deleted), Purge: to(Purging),
	},
	Purging: {
		Created: conflict, CreateFailed: conflict, FoundWhole: conflict,
		Start: conflict, Stop: conflict, Restart: conflict, AccessLost: conflict, Delete: conflict,
		ReopenAsActive: to(Active, OpenAccess), ReopenAsStopped: to(Stopped), ReopenAsError: to(Error),
		Backup: conflict, Configure: conflict, Restore: conflict,
		Isolate: conflict, Recover: conflict, Purge: conflict,
	},
}

// Decide applies an event; a refusal is DATABASE_STATE_CONFLICT.
func (s Status) Decide(e Event) (machine.Cell[Status], error) { return Transitions.Decide(s, e) }

// ParseLifecycle accepts the three actions of the lifecycle route.
func ParseLifecycle(s string) (Event, error) { return fault.OneOf("action", s, Start, Stop, Restart) }
