package base

import (
	"cmp"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// RefusedForGood reports whether the agent's refusal is permanent. ReasonUnavailable, ReasonNoRoute, ReasonOtherProtocol,
// ReasonBusy, ReasonCrowded, ReasonUnfinished and ReasonBehind are temporary.
func RefusedForGood(err error) bool {
	var r *command.Refusal
	if !errors.As(err, &r) {
		return false
	}
	switch r.Reason {
	case command.ReasonNameTaken, command.ReasonConflict, command.ReasonClosed, command.ReasonInvalid, command.ReasonFailed,
		command.ReasonNotFound, command.ReasonStorageFull, command.ReasonStale, command.ReasonAltered, command.ReasonInService,
		command.ReasonIsolated, command.ReasonIncomplete, command.ReasonNotRecoverable, command.ReasonTooLarge:
		return true
	case command.ReasonFenced, command.ReasonCompleted, command.ReasonUnavailable, command.ReasonNoRoute,
		command.ReasonOtherProtocol, command.ReasonConnectRequired, command.ReasonDatabaseClosed, command.ReasonBusy,
		command.ReasonCrowded, command.ReasonUnfinished, command.ReasonBehind, command.ReasonStorageAway:
		return false
	}
	return false
}

// Unserved reports whether an agent serves no such request until it is updated: it lacks the route, or has another protocol.
func Unserved(err error) bool {
	return command.RefusedFor(err, command.ReasonNoRoute) || command.RefusedFor(err, command.ReasonOtherProtocol)
}

// ReasonShown is the reason of a refusal for good as a customer is told it, like that of a job that has failed: what only the
// operator can mend is ReasonFailed.
func ReasonShown(err error) command.Reason {
	for _, shown := range []command.Reason{command.ReasonStorageFull, command.ReasonNotRecoverable, command.ReasonClosed} {
		if command.RefusedFor(err, shown) {
			return shown
		}
	}
	return command.ReasonFailed
}

// RefusedBackup is the report of a file that an agent has refused for good to make. About a moment it says what the agent says.
func RefusedBackup(err error) command.BackupReport {
	r := command.BackupReport{State: command.BackupFailed, Reason: ReasonShown(err)}
	var no *command.Refusal
	if r.Reason == command.ReasonNotRecoverable && errors.As(err, &no) {
		r.Message = no.Message
	}
	return r
}

// JobFailed is what an operation fails with whose job the agent could not do: in the agent's words, where it has any that are
// fit for the customer, or in these.
func JobFailed(why command.Reason, says, message, noRoom string) *fault.Error {
	code := fault.AgentError
	if why == command.ReasonStorageFull {
		code, message = fault.BackupStorageFull, noRoom
	}
	if why == command.ReasonConflict {
		code = fault.BackupConflict
	}
	if why == command.ReasonNotRecoverable {
		code, message = fault.PointNotRecoverable, "the database cannot be had back as it was then"
	}
	if why == command.ReasonStorageAway {
		code, message = fault.BackupStorageUnavailable, "where backups are kept does not answer; try again later"
	}
	if why == command.ReasonClosed { // by a process that has ended between that and storing the end
		message = "it has ended without success, and why was lost before it was stored; it can be asked for again"
	}
	return fault.New(code, "%s", cmp.Or(says, message))
}

// MessageShown is the message of a refusal that is fit for the customer: that of ReasonBusy, which says what is in the way.
func MessageShown(err error) string {
	var r *command.Refusal
	if errors.As(err, &r) && r.Reason == command.ReasonBusy {
		return r.Message
	}
	return "it is as it was"
}

// An agent that has been told a higher generation than the stored one refuses a command as stale, or as another one of the same
// generation. Either another process has stored something newer meanwhile, which is then sent; or the metadata were restored
// from a backup, and the agent knows changes of which there is no record any more. The record is what counts: it moves past the
// agent's generations, and is sent again. Each attempt moves once, so that there is a pause between two moves without success.

// Superseded reports whether an agent refused a command for its generation.
func Superseded(err error) bool {
	return command.RefusedFor(err, command.ReasonStale) || command.RefusedFor(err, command.ReasonConflict)
}

// GenerationsOf are those that a refusal names.
func GenerationsOf(err error) command.Generations {
	var no *command.Refusal
	if errors.As(err, &no) && no.Generations != nil {
		return *no.Generations
	}
	return command.Generations{}
}

// NextGeneration is a generation above the stored one and above all that the agent has been told.
func NextGeneration(stored int64, refusal error) int64 {
	g := GenerationsOf(refusal)
	return max(stored, g.Applied, g.Admitted) + 1
}

// WhyRefused is the agent's own message, or the error where it has not refused: for the operator.
func WhyRefused(err error) string {
	var r *command.Refusal
	if errors.As(err, &r) && r.Message != "" {
		return r.Message
	}
	return err.Error()
}

// ErrOutOfService is the caller's error where a server has a database out of service that should be in service: the metadata are
// of before its deletion. It is as it was; the doctor finds it, and brings it back.
func ErrOutOfService(refusal error) *fault.Error {
	return fault.Wrap(refusal, fault.AgentError, "the database server has the database out of service, and has changed nothing; "+
		"the operators of the service have to bring it back first")
}
