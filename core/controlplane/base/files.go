package base

import (
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// ErrBackupNotFound is the error for a backup that is missing.
func ErrBackupNotFound() error { return fault.New(fault.BackupNotFound, "no such backup") }

// FileError is the caller's error when an agent does not serve or delete a file.
func FileError(err error, message string) error {
	switch {
	case command.RefusedFor(err, command.ReasonNotFound):
		return ErrBackupNotFound()
	case command.RefusedFor(err, command.ReasonStorageAway):
		return fault.Wrap(err, fault.BackupStorageUnavailable, "where backups are kept does not answer; try again later")
	case Unserved(err):
		return fault.Wrap(err, fault.AgentRouteUnavailable, "unavailable until the agent of the database server is updated")
	default:
		return fault.Wrap(err, fault.AgentError, "%s", message)
	}
}
