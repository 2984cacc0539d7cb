package ledger

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Unavailable is a refusal of what may be sent again.
func Unavailable(message string, cause error) *command.Refusal {
	return &command.Refusal{Reason: command.ReasonUnavailable, Message: message, Cause: cause}
}

// SQLSTATEs that mean something here.
const (
	DuplicateDatabase = "42P04"
	DuplicateObject   = "42710"
	UniqueViolation   = "23505"
	ObjectInUse       = "55006"
	notInCharge       = "PGH01"
	crashedMeanwhile  = "PGH02"
)

// AsRefusal turns every error into a refusal. Errors that are not known to be final become "unavailable": the ledger has the
// intent, so a repeated command continues where this one stopped.
func AsRefusal(err error) *command.Refusal {
	var r *command.Refusal
	var known *fault.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &known) && ReasonOf(known.Code) != "":
		return command.Refuse(ReasonOf(known.Code), "%s", known.Message)
	case pg.State(err) == notInCharge:
		return Unavailable("another agent is in charge of this server", err)
	case pg.State(err) == crashedMeanwhile:
		return errCrashed(err)
	case errors.Is(err, pooler.ErrUnreachable):
		return Unavailable("PgBouncer does not answer", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable("it took too long; send the command again", err)
	case isFinal(err):
		message := "PostgreSQL refused (SQLSTATE " + pg.State(err) + ")"
		return &command.Refusal{Reason: command.ReasonFailed, Message: message, Cause: err}
	default:
		return Unavailable("PostgreSQL or PgBouncer did not do it; send the command again", err)
	}
}

// isFinal reports whether PostgreSQL refused the statement itself, rather than being unable to run it now. Classes: 22 data, 23
// integrity, 42 syntax or privilege.
func isFinal(err error) bool {
	switch state := pg.State(err); {
	case len(state) < 2:
		return false
	default:
		return state[:2] == "22" || state[:2] == "23" || state[:2] == "42"
	}
}

// ReasonOf is what an error about files is on the wire; empty: another error.
func ReasonOf(code fault.Code) command.Reason {
	return map[fault.Code]command.Reason{
		fault.BackupStorageFull: command.ReasonStorageFull, fault.BackupStorageUnavailable: command.ReasonStorageAway,
		fault.BackupConflict:   command.ReasonConflict,
		fault.DatabaseNotFound: command.ReasonNotFound, fault.BackupNotFound: command.ReasonNotFound,
		fault.UploadNotFound: command.ReasonNotFound, fault.PointNotRecoverable: command.ReasonNotRecoverable,
	}[code]
}
