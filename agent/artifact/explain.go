package artifact

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

// undumpable is a dump that failed for a reason in the database itself, which its owner can do something about.
type undumpable struct {
	reason string
	cause  error
}

func (u *undumpable) Error() string { return u.cause.Error() }
func (u *undumpable) Unwrap() error { return u.cause }

// ForCustomer says what stands in the way. It names nothing but the customer's own objects and what PostgreSQL says of them.
func (u *undumpable) ForCustomer() string { return u.reason }

const lockTimeout = "55P03"

// explained adds the reason to the failures of a dump that its owner can understand, and leaves the others as they are.
func (c *Config) explained(err error) error {
	var refused *pgconn.PgError
	var failed *pgDumpError
	switch {
	case pq.As(err, lockTimeout) != nil, errors.As(err, &refused) && refused.Code == lockTimeout:
		return &undumpable{fmt.Sprintf("a table stayed locked for %s; end the transaction that holds the lock", c.LockWait), err}
	case errors.As(err, &failed):
		if reason := failed.reason(); reason != "" {
			return &undumpable{reason, err}
		}
	}
	return err
}

// pgDumpError is what pg_dump complained of when it gave up.
type pgDumpError struct {
	complaint string
	err       error
}

func (e *pgDumpError) Error() string { return "pg_dump: " + e.err.Error() + ": " + e.complaint }
func (e *pgDumpError) Unwrap() error { return e.err }

var (
	serverSaid  = regexp.MustCompile(`(?:query failed|Error message from server): ERROR:\s+(.+)`)
	dumpedTable = regexp.MustCompile(`Dumping the contents of table "(.*)" failed`)
)

// reason is what the server said about the database's content; empty where pg_dump failed for anything else, such as the way to
// the server.
func (e *pgDumpError) reason() string {
	said := serverSaid.FindStringSubmatch(e.complaint)
	if said == nil {
		return ""
	}
	if table := dumpedTable.FindStringSubmatch(e.complaint); table != nil {
		return shorten(fmt.Sprintf("the table %q cannot be dumped: %s", table[1], said[1]), 400)
	}
	return shorten("the database cannot be dumped: "+said[1], 400)
}
