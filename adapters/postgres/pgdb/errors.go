package pgdb

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

	"github.com/pgherd/pgherd/ports"
)

// ErrContended means that other transactions got in the way of a claim. The transaction is run again.
var ErrContended = errors.New("other transactions are in the way of the claim")

// ErrCommitUnknown means that the connection was lost while a transaction was being committed: it may or may not have been, so
// it is not run again.
var ErrCommitUnknown = errors.New("the connection was lost during the commit, whose outcome is unknown")

// refusal turns an error of a statement into the one that the ports promise. Where a statement that deletes rows breaks a
// reference, others refer to what it would delete, which is there.
func (d *DB) refusal(ctx context.Context, st *Statement, err error) error {
	if err == nil || ctx.Err() != nil {
		return translate(ctx, err)
	}
	if e := pq.As(err, pqerror.ForeignKeyViolation, pqerror.RestrictViolation); e != nil && st.deletes() {
		return fmt.Errorf("%w (%s)", ports.ErrReferenced, e.Constraint)
	}
	if e := pq.As(err, pqerror.UniqueViolation); e != nil {
		if refusal, ok := d.refusals[e.Constraint]; ok {
			return refusal()
		}
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
	return pq.As(err, pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected) != nil || errors.Is(err, ErrContended)
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
