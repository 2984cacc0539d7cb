package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// broken maps the name of a unique constraint to the fault that its port names.
var broken = map[string]func() error{
	"users_email_any_case":           func() error { return fault.Invalid("email", "is in use") },
	"accounts_owner_unique":          func() error { return fault.Invalid("owner", "owns an account already") },
	"ci_namespaces_name_unique":      func() error { return fault.Invalid("name", "is in use") },
	"ci_trusts_unique":               citoken.ErrTrusted,
	"servers_name_unique":            func() error { return fault.Invalid("name", "is in use") },
	"servers_installation_unique":    server.ErrRegistered,
	"databases_name_unique":          database.ErrNameTaken,
	"operations_one_open":            errOperationOpen,
	"allowlist_entries_cidr_unique":  func() error { return fault.Invalid("cidr", "is already on the allowlist") },
	"backups_filename_unique":        func() error { return fault.New(fault.BackupConflict, "a backup of that name exists") },
	"outbox_events_operation_unique": func() error { return errors.New("the operation has made this event already") },
	"role_changes_one_pending":       errChangeUnfinished,
	"role_changes_key_unique":        errChangeUnfinished,
	"certificate_keys_one_signs":     certificate.ErrKeySigns,
	"previews_one_live":              errRefTaken,
	"previews_use_unique":            errRefTaken,
	"webhook_attempts_once":          func() error { return errors.New("the attempt is recorded already") },
}

func errChangeUnfinished() error {
	return fault.New(fault.ManagedRoleConflict, "another change of the database's logins is unfinished")
}

func errOperationOpen() error {
	return fault.New(fault.DatabaseStateConflict, "another operation of the database is open")
}

// translateDelete is translate for a statement that deletes rows: where it breaks a reference, others refer to what it would
// delete, which is there.
func translateDelete(ctx context.Context, err error) error {
	if e := pq.As(err, pqerror.ForeignKeyViolation, pqerror.RestrictViolation); e != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (%s)", ports.ErrReferenced, e.Constraint)
	}
	return translate(ctx, err)
}

// translate turns an error of the driver into the one that the ports promise. A cancelled context makes the server answer with
// SQLSTATE 57014, or breaks the connection: the caller sees the context's error. Where its time was not enough, the store is not
// available either.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ports.ErrUnavailable) {
		return cause
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w in time: %w", ports.ErrUnavailable, ctx.Err())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ports.ErrNoRow
	}
	if e := pq.As(err, pqerror.UniqueViolation); e != nil {
		if refusal, ok := broken[e.Constraint]; ok {
			return refusal()
		}
	}
	// A row refers to something that does not exist, or an ID is not a UUID and so identifies nothing.
	if e := pq.As(err, pqerror.ForeignKeyViolation, pqerror.InvalidTextRepresentation); e != nil {
		return fmt.Errorf("%w (%s %s)", ports.ErrNoRow, e.Code, e.Constraint)
	}
	if disconnected(err) && !errors.Is(err, ports.ErrUnavailable) {
		return fmt.Errorf("%w: %w", ports.ErrUnavailable, err)
	}
	return err
}

// rolledBack reports whether the transaction was undone for reasons of concurrency, so that it may run again.
func rolledBack(err error) bool {
	return pq.As(err, pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected) != nil || errors.Is(err, errContended)
}

// readOnly reports whether the server takes no writes: it is not the primary any more, or was told so.
func readOnly(err error) bool { return pq.As(err, pqerror.ReadOnlySQLTransaction) != nil }

// disconnected reports whether the connection is gone or of no use, or could not be made.
func disconnected(err error) bool {
	var unconnected *ConnectError
	if errors.As(err, &unconnected) || readOnly(err) {
		return true
	}
	if e := pq.As(err); e != nil {
		class := e.Code.Class()
		return class == "08" || e.Code == pqerror.AdminShutdown || e.Code == pqerror.CrashShutdown ||
			e.Code == pqerror.CannotConnectNow
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// State is the SQLSTATE that the metadata database answered with; empty where an error has none.
func State(err error) string {
	if e := pq.As(err); e != nil {
		return string(e.Code)
	}
	return ""
}

// stalePlan reports whether a prepared statement was made for a table that has changed since.
func stalePlan(err error) bool {
	e := pq.As(err, pqerror.FeatureNotSupported)
	return e != nil && strings.Contains(e.Routine, "RevalidateCachedQuery")
}
