package copies

import (
	"cmp"
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// loadsAtOnce is how many copies of backups are made at a time, of which an account has at most half. They have slots of their
// own: whoever needs a backup back does not wait for the backups of a night, and takes no turn from those.
const loadsAtOnce = 2

// kind makes the copy for a restore.
func (x *Copies) kind() jobs.Kind[command.Load, command.LoadReport] {
	return jobs.Kind[command.Load, command.LoadReport]{
		Slots: jobs.NewSlots(loadsAtOnce),
		Check: func(ctx context.Context, op id.OperationID, c command.Load) error {
			return x.Check(ctx, requestOf(jobs.Job{OperationID: op}, c))
		},
		Told: func(op id.OperationID, c command.Load) {
			if c.Source.AtPeer {
				x.Peers.Note(op, c.Peer)
			}
		},
		Over: x.forget,
		Run: func(ctx context.Context, j jobs.Job, c command.Load, tell jobs.Tell) (command.LoadReport, error) {
			if c.Rehearsal {
				return rehearsed(x.Rehearse(ctx, requestOf(j, c), tell))
			}
			return reported(x.Load(ctx, requestOf(j, c), tell))
		},
		Abandon: func(ctx context.Context, j jobs.Job, c command.Load, attempts int, last error) (command.LoadReport, error) {
			if c.Rehearsal {
				err := cmp.Or(x.removeRehearsal(ctx, j.OperationID), error(CutShort("rehearsal", attempts, last)))
				return reported(Loaded{}, err)
			}
			return reported(x.Abandon(ctx, j.OperationID, attempts, last))
		},
		Discard: func(ctx context.Context, j jobs.Job, c command.Load) error {
			x.forget(j.OperationID, c)
			if c.Rehearsal {
				return x.removeRehearsal(ctx, j.OperationID)
			}
			return x.Discard(ctx, j.OperationID)
		},
		Running: func(stage string, progress int, bytes command.Bytes) command.LoadReport {
			if stage == jobs.StageQueued {
				stage = StageWaiting
			}
			return command.LoadReport{State: command.LoadRunning, Stage: stage, Progress: progress, Bytes: bytes}
		},
		Failed: func(cause error) command.LoadReport {
			if errors.As(cause, new(*peer.AwayError)) {
				return failedLoad(command.ReasonUnavailable, "the database's other server does not answer")
			}
			if jobs.IsAway(cause) {
				return failedLoad(command.ReasonStorageAway, "where backups are kept does not answer")
			}
			const otherwise = "the backup could not be restored into a copy; " + jobs.OperatorsKnow
			return failedLoad(command.ReasonFailed, jobs.ForCustomer(cause, otherwise))
		},
		Made:    func(r command.LoadReport) bool { return r.State == command.LoadReady },
		Passing: true, // Switch completes a restore
	}
}

func (x *Copies) forget(op id.OperationID, c command.Load) {
	if c.Source.AtPeer {
		x.Peers.Forget(op)
	}
}

func requestOf(j jobs.Job, c command.Load) Request {
	req := Request{
		OperationID: j.OperationID, DatabaseID: c.DatabaseID, Database: j.Database, Owner: j.Database, Account: j.Account,
		Source: c.Source, Names: map[string]string{}, Rows: c.Compare, Moving: c.Moving,
	}
	for _, n := range c.Names {
		req.Names[n.From] = n.To
	}
	return req
}

// reported is what became of a load. An error means that this is open.
func reported(copied Loaded, err error) (command.LoadReport, error) {
	if err == nil {
		return command.LoadReport{
			State: command.LoadReady, Stage: "done", Progress: 100, SizeBytes: copied.SizeBytes, Notes: copied.Notes,
			Change: &copied.Change,
		}, nil
	}
	var late *jobs.TooLongError
	var cut *jobs.CutShortError
	var known *fault.Error
	switch {
	case errors.As(err, &late): // as another attempt would
		message := late.Error()
		if errors.As(err, &known) { // with the statement that ran
			message = known.Message
		}
		return failedLoad(command.ReasonFailed, message), nil
	case errors.As(err, &cut):
		return failedLoad(command.ReasonFailed, cut.Error()), nil
	case errors.As(err, &known):
		switch known.Code {
		case fault.BackupNotVerified:
			return failedLoad(command.ReasonInvalid, known.Message), nil
		case fault.UploadIncomplete:
			return failedLoad(command.ReasonIncomplete, known.Message), nil
		case fault.BackupStorageFull, fault.BackupConflict, fault.BackupNotFound, fault.UploadNotFound:
			return failedLoad(ledger.ReasonOf(known.Code), known.Message), nil
		}
	}
	return command.LoadReport{}, err
}

func failedLoad(reason command.Reason, message string) command.LoadReport {
	return command.LoadReport{State: command.LoadFailed, Stage: "done", Progress: 100, Reason: reason, Message: message}
}
