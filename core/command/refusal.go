package command

import (
	"errors"
	"fmt"
)

// Reason says why an agent refused.
type Reason string

// The reasons.
const (
	ReasonStale       Reason = "stale"        // a newer generation was admitted
	ReasonFenced      Reason = "fenced"       // the operation has a command with a higher epoch
	ReasonConflict    Reason = "conflict"     // the same command with another payload
	ReasonClosed      Reason = "closed"       // the operation is closed
	ReasonCompleted   Reason = "completed"    // the operation is complete and cannot be closed
	ReasonNameTaken   Reason = "name_taken"   // something of that name exists that this service did not make
	ReasonNotFound    Reason = "not_found"    // no such database or file
	ReasonStorageFull Reason = "storage_full" // no room for a backup
	ReasonUnavailable Reason = "unavailable"  // PostgreSQL or PgBouncer is down; try again
	ReasonNoRoute     Reason = "no_route"     // the agent does not have this route
	ReasonInvalid     Reason = "invalid"      // the agent cannot read the command
	ReasonFailed      Reason = "failed"       // a permanent failure; Message describes it

	ReasonStorageAway     Reason = "storage_away"     // where backups are kept does not answer; try again
	ReasonOtherProtocol   Reason = "other_protocol"   // the agent has another protocol, and has not looked further; try again
	ReasonConnectRequired Reason = "connect_required" // the owner has withdrawn CONNECT from the role, or not granted it
	ReasonDatabaseClosed  Reason = "database_closed"  // the database is stopped
	ReasonBusy            Reason = "busy"             // customers cannot be kept out of the database; nothing came of it, try again
	ReasonCrowded         Reason = "crowded"          // too many of its sort come at this moment, of whomever; try again
	ReasonUnfinished      Reason = "unfinished"       // some of it is done; it goes on when the command is sent again
	ReasonAltered         Reason = "altered"          // it was changed by others than this service; Message says what
	ReasonInService       Reason = "in_service"       // the database is in service, and what was asked for would destroy it
	ReasonIsolated        Reason = "isolated"         // the database stands, and is out of service
	ReasonIncomplete      Reason = "incomplete"       // an upload that makes nothing, or lacks pg_dump's closing line
	ReasonNotRecoverable  Reason = "not_recoverable"  // the archive does not have that moment; Message is fit for the customer
	ReasonTooLarge        Reason = "too_large"        // the database would become larger than it may
	ReasonBehind          Reason = "behind"           // nobody has vouched for an operation on the database; do that, and try again
)

// Reasons lists every reason. One that is not listed may or may not be final.
var Reasons = []Reason{
	ReasonStale, ReasonFenced, ReasonConflict, ReasonClosed, ReasonCompleted, ReasonNameTaken, ReasonNotFound, ReasonStorageFull,
	ReasonStorageAway,
	ReasonUnavailable, ReasonNoRoute, ReasonOtherProtocol, ReasonInvalid, ReasonFailed, ReasonConnectRequired, ReasonDatabaseClosed,
	ReasonBusy, ReasonCrowded, ReasonUnfinished, ReasonAltered, ReasonInService, ReasonIsolated,
	ReasonBehind, ReasonIncomplete, ReasonNotRecoverable, ReasonTooLarge,
}

// Refusal is an agent's definite refusal: it has not done what it was told.
type Refusal struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"` // for an operator; it contains no secret
	// Generations come with ReasonStale and ReasonConflict, where anything was admitted.
	Generations *Generations `json:"generations,omitempty"`
	// Cause is for the agent's own log.
	Cause error `json:"-"`
}

// Generations are what an agent has been told about a resource by commands of one kind. A generation is admitted before it is
// applied: what lies between the two may be in force or not.
type Generations struct {
	Applied    int64 `json:"applied"`              // the highest whose command was done
	Admitted   int64 `json:"admitted"`             // the highest whose command was begun
	Credential int64 `json:"credential,omitempty"` // of a login's password, as last rotated
}

func (r *Refusal) Error() string { return "agent refused (" + string(r.Reason) + "): " + r.Message }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// Refuse makes a refusal.
func Refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RefusedFor reports whether err is a refusal for that reason.
func RefusedFor(err error, reason Reason) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == reason
}
