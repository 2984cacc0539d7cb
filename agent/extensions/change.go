package extensions

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// Config bounds the work on extensions.
type Config struct {
	// LockWait is how long a change waits for one lock, and Patience how long it tries again; 0 means 1 s and 20 s.
	LockWait, Patience time.Duration
}

// Changer installs and upgrades extensions. It is safe for concurrent use by different operations.
type Changer struct {
	Config
	ledger *ledger.Ledger
	admin  *sql.DB // connections to the maintenance database
	log    *zap.Logger
	turns  locks.Locks // by operation: they keep a sweep and a job apart
}

const (
	// changes is how many extensions are changed at a time, of which an account has at most half. Each change has a connection
	// of its own, and may wait for locks of its customer's for as long as its patience lasts; backups do not wait for it. An
	// account with very many such changes keeps another waiting for one of them. There are no more slots, because the server
	// keeps few connections for the agent.
	changes = 2
	// changeAdmin bounds the connections to the maintenance database that they share. No statement on one waits for a customer
	// for longer than a moment. None is kept: what a connection knows of roles can be outdated, and the server has few.
	changeAdmin = 2
)

// New registers the kind of job that changes an extension.
func New(c Config, l *ledger.Ledger, log *zap.Logger) (*Changer, error) {
	admin, err := l.Server().OpenMaintenance(changeAdmin)
	if err != nil {
		return nil, err
	}
	admin.SetMaxIdleConns(0)
	c.LockWait, c.Patience = cmp.Or(c.LockWait, time.Second), cmp.Or(c.Patience, 20*time.Second)
	x := &Changer{Config: c, ledger: l, admin: admin, log: log}
	ledger.OnJob(l, x.kind())
	return x, nil
}

// Close closes the connections.
func (c *Changer) Close() error { return c.admin.Close() }

// The stages of a change.
const (
	stagePreparing = "preparing"
	stageChanging  = "changing"
)

func (c *Changer) kind() jobs.Kind[command.ChangeExtension, command.ExtensionReport] {
	return jobs.Kind[command.ChangeExtension, command.ExtensionReport]{
		Slots: jobs.NewSlots(changes), Run: c.run, Abandon: c.abandon,
		Discard: func(ctx context.Context, j jobs.Job, _ command.ChangeExtension) error {
			return c.discard(ctx, j.OperationID)
		},
		Complete: func(ctx context.Context, j jobs.Job, _ command.ChangeExtension) (bool, error) {
			return c.committed(ctx, j)
		},
		Running: func(stage string, _ int, _ command.Bytes) command.ExtensionReport {
			return command.ExtensionReport{State: command.ExtensionRunning, Stage: stage}
		},
		Failed: func(cause error) command.ExtensionReport {
			const otherwise = "the extension could not be changed; nothing was. Try again, " +
				"or give the operation's ID to the people who run the service"
			return failed(jobs.ForCustomer(cause, otherwise))
		},
		Made: func(r command.ExtensionReport) bool { return r.Changed },
	}
}

func failed(message string) command.ExtensionReport {
	return command.ExtensionReport{State: command.ExtensionFailed, Reason: command.ReasonFailed, Message: message}
}

func changed(c command.ChangeExtension) command.ExtensionReport {
	return command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: c.Version, Schema: extension.Schema,
	}
}

// run makes a change, or finds out that an earlier run has made it. An error says that nothing was changed, and that it may be
// run again; only a job that was canceled leaves its outcome open.
func (c *Changer) run(
	ctx context.Context, j jobs.Job, change command.ChangeExtension, tell jobs.Tell,
) (command.ExtensionReport, error) {
	release, err := c.turns.Take(ctx, string(j.OperationID))
	if err != nil {
		return command.ExtensionReport{}, err
	}
	defer release()
	defer c.leave(ctx, j)
	tell(stagePreparing, 0, command.Bytes{})
	if done, err := c.settled(ctx, j); err != nil || done {
		return changed(change), err
	}
	report, err := c.change(ctx, j, change, tell)
	if err == nil {
		return report, nil
	}
	done, unsettled := c.settled(ctx, j)
	if done {
		return changed(change), nil
	}
	return report, errors.Join(err, unsettled)
}

// leave drops the login of an operation, or leaves it to a sweep.
func (c *Changer) leave(ctx context.Context, j jobs.Job) {
	drop := func(ctx context.Context) error { return c.dropLogin(ctx, j.OperationID) }
	if err := loop.Persist(ctx, cleanupTime, drop); err != nil {
		c.log.Warn("the login of a change is left", zap.String("operationId", string(j.OperationID)),
			zap.String("databaseId", string(j.DatabaseID)), zap.String("database", j.Database), zap.Error(err))
	}
}

// abandon ends a change of which so many attempts were cut short, and makes no other.
func (c *Changer) abandon(
	ctx context.Context, j jobs.Job, change command.ChangeExtension, attempts int, _ error,
) (command.ExtensionReport, error) {
	if done, err := c.settled(ctx, j); err != nil || done {
		return changed(change), err
	}
	const text = "PostgreSQL or its agent went down during %d attempts at this change; nothing was changed"
	return failed(fmt.Sprintf(text, attempts)), c.discard(ctx, j.OperationID)
}

// discard drops the login of a change that is over. A sweep may be at it at the same moment.
func (c *Changer) discard(ctx context.Context, op id.OperationID) error {
	release, err := c.turns.Take(ctx, string(op))
	if err != nil {
		return err
	}
	defer release()
	return c.dropLogin(ctx, op)
}

// settled finds out whether an attempt at the change was committed, and asks until PostgreSQL tells. Afterwards none goes on.
func (c *Changer) settled(ctx context.Context, j jobs.Job) (done bool, err error) {
	const pause = time.Second
	err = loop.Persist(ctx, cleanupTime, func(ctx context.Context) error {
		for {
			if done, err = c.committed(ctx, j); err == nil {
				return nil
			}
			if loop.Wait(ctx, pause) != nil {
				return err
			}
		}
	})
	return done, err
}

// committed ends the session of the last attempt, and asks PostgreSQL what has become of its transaction. It is one of the
// server, not of the database, and what it was asked for cannot be undone by whoever changes the database since. PostgreSQL
// remembers it for hundreds of millions of others; one that it has forgotten counts as not committed, and the next attempt finds
// out that nothing is left to do. So does one that it has never had, where the ledger was restored into another server.
func (c *Changer) committed(ctx context.Context, j jobs.Job) (bool, error) {
	if err := c.endSession(ctx, j.OperationID); err != nil {
		return false, err
	}
	const query = `SELECT pg_xact_status(xact) FROM ledger.job WHERE operation_id = $1 AND step = $2`
	var status sql.NullString
	err := c.admin.QueryRowContext(ctx, query, string(j.OperationID), j.Step).Scan(&status)
	switch {
	case errors.Is(err, sql.ErrNoRows), pq.As(err, unknownTransaction) != nil:
		return false, nil //nolint:nilerr // see above
	case err == nil && status.String == "in progress":
		return false, errors.New("the change is still being made or undone")
	}
	return status.String == "committed", err
}

const unknownTransaction = "22023" // it is in the future

// remember enters the transaction in which the change is about to be made, before it is.
func (c *Changer) remember(ctx context.Context, j jobs.Job, xact string) error {
	const statement = `UPDATE ledger.job SET xact = $3::xid8 WHERE operation_id = $1 AND step = $2`
	done, err := c.admin.ExecContext(ctx, statement, string(j.OperationID), j.Step, xact)
	if err != nil {
		return err
	}
	if n, _ := done.RowsAffected(); n != 1 { // PostgreSQL always tells
		return errors.New("the ledger has no such job")
	}
	crash.Point(crash.ExtensionTold)
	return nil
}

// cleanupTime bounds what a canceled job still does.
const cleanupTime = 15 * time.Second
