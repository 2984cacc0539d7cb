package pgdump

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

// Undumpable is a backup that failed for a reason that its owner can do something about.
type Undumpable struct {
	Reason string
	Cause  error
}

func (u *Undumpable) Error() string { return u.Cause.Error() }
func (u *Undumpable) Unwrap() error { return u.Cause }

// ForCustomer says what stands in the way, in fixed words.
func (u *Undumpable) ForCustomer() string { return u.Reason }

const (
	lockTimeout   = "55P03"
	deadlock      = "40P01"
	adminShutdown = "57P01"
)

const ended = "a session of the dump was ended: the database has got many more tables since the dump began, " +
	"or the operator did it"

// Explained adds the reason to the failures of a dump that its owner can understand, and leaves the others as they are. A
// *Disturbed may go away by itself.
func (d *Dump) Explained(err error) error {
	var refused *pgconn.PgError
	var failed *failedError
	var disturbed *Disturbed
	switch {
	case errors.As(err, &disturbed):
		if disturbed.locked {
			return &Undumpable{d.locked(disturbed.Object), disturbed.Cause} // and no *Disturbed, which is tried again
		}
		return err
	case pq.As(err, lockTimeout) != nil:
		return &Undumpable{d.locked(""), err}
	case errors.As(err, &refused) && refused.Code == adminShutdown:
		return &Undumpable{ended, err}
	case errors.As(err, &failed):
		if reason := failed.reason(); reason != "" {
			return &Undumpable{reason, err}
		}
	}
	if gone := removed(err); gone != nil {
		return gone
	}
	return err
}

// locked says of a table that it stayed locked; empty: of one that is not known.
func (d *Dump) locked(table string) string {
	return fmt.Sprintf("%s stayed locked for %s; end the transaction that holds the lock", cmp.Or(table, "a table"), d.tool.LockWait)
}

// failedError is what pg_dump complained of when it gave up.
type failedError struct {
	complaint string
	err       error
}

func (e *failedError) Error() string { return "pg_dump: " + e.err.Error() + ": " + e.complaint }
func (e *failedError) Unwrap() error { return e.err }

// known are complaints of the server that have a cause in the database. The text for the customer is fixed: what a complaint says
// may have been written by a customer's code, and must not be shown.
var known = []struct{ complaint, reason string }{
	{"invalid memory alloc request size", "a row is too large: PostgreSQL writes at most about 1 GB of text for one"},
	{"out of shared memory", "it has more tables and sequences than the server can lock at once; the operator can raise the limit"},
	{"terminating connection due to administrator command", ended},
}

// deniedObject is the complaint of a large object that the dump's login, which can do what the owners of large objects can, may
// not read. Its number is all that is taken from it.
var deniedObject = regexp.MustCompile(`ERROR:  permission denied for large object ([0-9]{1,10})\b`)

// reason is what the customer is told; empty where pg_dump failed for anything else, such as the way to the server.
func (e *failedError) reason() string {
	for _, k := range known {
		if strings.Contains(e.complaint, "ERROR:  "+k.complaint) || strings.Contains(e.complaint, "FATAL:  "+k.complaint) {
			return k.reason
		}
	}
	if found := deniedObject.FindStringSubmatch(e.complaint); found != nil {
		return "the owner of large object " + found[1] + " may not read it; grant it SELECT on that, or remove the object"
	}
	return ""
}
