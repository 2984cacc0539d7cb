package extensions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/command"
)

// statementError is what PostgreSQL says of the statement that was asked for, and not of what the agent does around it.
type statementError struct{ error }

func (e *statementError) Unwrap() error { return e.error }

// refusal is what a customer is told of an attempt that failed for good; empty where another may succeed, or the outcome is open.
// What PostgreSQL says of the statement may hold names of the customer's objects; what it says of others is no customer's.
func refusal(err error, c command.ChangeExtension) string {
	var no *refusedError
	var asked *statementError
	var said *pq.Error
	switch {
	case errors.As(err, &no):
		return no.reason
	case !errors.As(err, &asked) || !errors.As(asked, &said):
		return ""
	case said.Code == queryCanceled:
		return fmt.Sprintf("%s took longer than %s", statement(c), statementTime)
	case slices.Contains(passing, string(said.Code.Class())) || said.Code == lockNotAvailable:
		return ""
	}
	return fmt.Sprintf("PostgreSQL refused %s: %s (SQLSTATE %s)", statement(c), load.Shorten(said.Message, mostSaid), said.Code)
}

const (
	queryCanceled    = "57014"
	lockNotAvailable = "55P03"
)

// passing classes: connection, resources, operator intervention, system errors, internal errors, and conflicts with others.
var passing = []string{"08", "53", "57", "58", "XX", "40"}

// mostSaid bounds what is passed on of PostgreSQL's words.
const mostSaid = 300

func locked(c command.ChangeExtension, blocker string, patience time.Duration) string {
	if blocker == "" {
		blocker = "another transaction"
	}
	return fmt.Sprintf("%s waited %s for a lock that %s holds; end that transaction and try again", statement(c), patience, blocker)
}

// watched runs a statement of the session pid, and looks once who is in its way.
func (c *Changer) watched(ctx context.Context, j jobs.Job, pid int, run func() error) (blocker string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	seen := make(chan string, 1)
	go func() {
		if loop.Wait(ctx, c.LockWait/2) != nil {
			seen <- ""
			return
		}
		seen <- c.blocker(ctx, j, pid)
	}()
	err = run()
	cancel()
	return <-seen, err
}

// blocker names whoever of the same database the session waits for.
func (c *Changer) blocker(ctx context.Context, j jobs.Job, pid int) string {
	const query = `SELECT usename, xact_start FROM pg_stat_activity
		WHERE pid = ANY (pg_blocking_pids($1)) AND datname = $2 AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1`
	var who string
	var since time.Time
	if c.admin.QueryRowContext(ctx, query, pid, j.Database).Scan(&who, &since) != nil {
		return ""
	}
	return fmt.Sprintf("a transaction of the login %s, open since %s,", who, since.UTC().Format(time.RFC3339))
}
