package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

// Refusal is a definite refusal: the command was not carried out. Reason is one of the protocol's; Message is for an operator
// and contains no secret.
type Refusal struct {
	Reason  string
	Message string
	// Generations are set with "stale" and "conflict".
	Generations *protocol.Generations
	cause       error
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Message }

// Unwrap returns the refusal's cause, which is for the agent's log and not sent.
func (r *Refusal) Unwrap() error { return r.cause }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// unavailable is a refusal of what may be sent again.
func unavailable(message string, cause error) *Refusal {
	return &Refusal{Reason: protocol.ReasonUnavailable, Message: message, cause: cause}
}

// SQLSTATEs that mean something here.
const (
	duplicateDatabase  = "42P04"
	duplicateObject    = "42710"
	uniqueViolation    = "23505"
	lockNotAvailable   = "55P03"
	internalError      = "XX000" // "tuple concurrently updated" among others
	undefinedDatabase  = "3D000"
	objectInUse        = "55006"
	notInCharge        = "PGH01"
	crashedMeanwhile   = "PGH02"
	serializationError = "40001"
	deadlockDetected   = "40P01"
)

func sqlState(err error) string {
	var p *pq.Error
	if errors.As(err, &p) {
		return string(p.Code)
	}
	return ""
}

// AsRefusal turns every error into a refusal. Errors that are not known to be final become "unavailable": the ledger has the
// intent, so a repeated command continues where this one stopped.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return r
	case sqlState(err) == notInCharge:
		return unavailable("another agent is in charge of this server", err)
	case sqlState(err) == crashedMeanwhile:
		return errCrashed(err)
	case errors.Is(err, pooler.ErrUnreachable):
		return unavailable("PgBouncer does not answer", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("it took too long; send the command again", err)
	case isFinal(err):
		return &Refusal{Reason: protocol.ReasonFailed, Message: "PostgreSQL refused (SQLSTATE " + sqlState(err) + ")", cause: err}
	default:
		return unavailable("PostgreSQL or PgBouncer did not do it; send the command again", err)
	}
}

// isFinal reports whether PostgreSQL refused the statement itself, rather than being unable to run it now. Classes: 22 data, 23
// integrity, 42 syntax or privilege.
func isFinal(err error) bool {
	switch state := sqlState(err); {
	case len(state) < 2:
		return false
	default:
		return state[:2] == "22" || state[:2] == "23" || state[:2] == "42"
	}
}
