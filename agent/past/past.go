// Package past does what is done with databases as they were at moments, in servers beside the live one.
package past

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Past does the work. It is safe for concurrent use by different operations.
type Past struct {
	*copies.Deps
	archive *archive.Archive // nil: none is kept
}

// CrashPoints names the moments at which tests kill an agent, in their order.
var CrashPoints = []string{
	"rescue.recovered", "rescue.begun", "rescue.copied", "rescue.committed", "look.asking", "look.stopped",
}

// atOnce is how much of such work is done at a time, of which an account has at most half. It has slots of its own: it may take
// long, and nobody's backup waits for it.
const atOnce = 2

// Register adds the kinds of jobs that do the work.
func Register(l *ledger.Ledger, d *copies.Deps, a *archive.Archive) {
	x := &Past{d, a}
	slots := jobs.NewSlots(atOnce)
	ledger.OnJob(l, x.rescues(slots))
	ledger.OnJob(l, looking(slots, x.compare, func(r *command.ComparisonReport) *command.Look { return &r.Look }))
	ledger.OnJob(l, looking(slots, x.search, func(r *command.SearchReport) *command.Look { return &r.Look }))
}

// momentOf is a moment of the database of a job.
func momentOf(j jobs.Job, at time.Time) archive.Moment {
	return archive.Moment{OperationID: j.OperationID, DatabaseID: j.DatabaseID, At: at}
}

// beside does work for which there is room for a server beside, as of each of the moments. more is the room that it needs beside
// that; nil: none.
func (x *Past) beside(
	ctx context.Context, j jobs.Job, moments []time.Time, more func(size int64) []diskroom.Need, tell jobs.Tell,
	do func(context.Context) error,
) error {
	if x.archive == nil {
		return fault.New(fault.PointNotRecoverable, "the database's server keeps no archive")
	}
	c := x.Room.Claim(diskroom.Work{
		OperationID: j.OperationID, DatabaseID: j.DatabaseID, Database: j.Database,
		Waits: func() { tell(jobs.StageQueued, 0, command.Bytes{}) },
	})
	defer c.End()
	err := c.Reserve(ctx, func(ctx context.Context) ([]diskroom.Need, error) {
		size, err := x.archive.Size(ctx, j.DatabaseID)
		if err != nil {
			return nil, err
		}
		beside := diskroom.Need{Purpose: diskroom.Beside}
		for _, at := range moments {
			bytes, err := x.archive.Room(ctx, momentOf(j, at), size)
			if err != nil {
				return nil, err
			}
			beside.Bytes = max(beside.Bytes, bytes)
		}
		if more == nil {
			return []diskroom.Need{beside}, nil
		}
		return append(more(size), beside), nil
	})
	if err != nil {
		return err
	}
	used := func(context.Context) (int64, error) { return x.archive.Used(j.OperationID) }
	return c.Watch(ctx, diskroom.Beside, used, func(ctx context.Context) error {
		ctx, cancel := jobs.Within(ctx, "the work on the database as it was", x.Limits.Dump)
		defer cancel()
		return jobs.InTime(ctx, do(ctx))
	})
}

// refusal is an error that another attempt would end with, too. Its message is for the customer.
type refusal struct {
	reason         command.Reason
	field, message string
}

func (r *refusal) Error() string { return cmp.Or(r.field, string(r.reason)) + ": " + r.message }

// failed is what became of work that has failed. An error says that this is open.
func failed(err error) (command.Look, error) {

	say := func(reason command.Reason, message string) (command.Look, error) {
		return command.Look{State: command.LookFailed, Stage: "done", Progress: 100, Reason: reason, Message: message}, nil
	}
	var no *refusal
	var late *jobs.TooLongError
	var cut *jobs.CutShortError
	var known *fault.Error
	switch {
	case errors.As(err, &no):
		look, _ := say(no.reason, no.message)
		look.Field = no.field
		return look, nil
	case errors.As(err, &late): // as another attempt would
		return say(command.ReasonFailed, late.Error())
	case errors.As(err, &cut):
		return say(command.ReasonFailed, cut.Error())
	case jobs.IsAway(err): // it may be back
	case diskroom.IsFull(err):
		return say(command.ReasonStorageFull, "the server's disk is full")
	case errors.As(err, &known):
		switch known.Code {
		case fault.BackupStorageFull, fault.DatabaseNotFound, fault.PointNotRecoverable:
			return say(ledger.ReasonOf(known.Code), known.Message)
		}
	}
	return command.Look{}, err
}

// givenUp is what work has come to that was tried often enough.
func givenUp(cause error) command.Look {
	look := command.Look{State: command.LookFailed, Stage: "done", Progress: 100, Reason: command.ReasonFailed}
	if jobs.IsAway(cause) {
		look.Reason, look.Message = command.ReasonStorageAway, "where the archive is kept does not answer"
		return look
	}
	look.Message = jobs.ForCustomer(cause, "the database could not be had back as it was; "+jobs.OperatorsKnow)
	return look
}

func running(stage string, progress int, bytes command.Bytes) command.Look {
	return command.Look{State: command.LookRunning, Stage: stage, Progress: progress, Bytes: bytes}
}

func done() command.Look {
	return command.Look{State: command.LookDone, Stage: "done", Progress: 100}
}
