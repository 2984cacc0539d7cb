package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// waitPoll is how often something is looked at that is waited for.
const waitPoll = time.Second

const waitUsage = "wait for its end, and say on the way how far it is; where it fails, the command does, too"

// waitFor waits until an operation has ended, and tells each of its stages on standard error. An operation that has not
// succeeded is an error. One that goes on when the context ends is an error that says how to follow it.
func waitFor(ctx context.Context, cmd *cobra.Command, o *operator.Operator, op id.OperationID) (operation.Operation, error) {
	for told := ""; ; {
		now, err := o.Operation(ctx, op)
		switch {
		case ctx.Err() != nil:
			return now, fault.Wrap(ctx.Err(), fault.InternalError, "operation %s goes on: operation show follows it", op)
		case err != nil:
			return now, err
		case now.Status == operation.Succeeded:
			return now, nil
		case now.Status.Final():
			return now, notDone(now)
		}
		if now.Stage != told {
			told = now.Stage
			cmd.PrintErrf("%s (%d %%)\n", told, now.Progress)
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitPoll):
		}
	}
}

// notDone is why an operation that has ended has not succeeded.
func notDone(o operation.Operation) error {
	if f := o.Failure(); f != nil {
		return fault.New(f.Code, "%s", f.Message)
	}
	return fault.New(fault.DatabaseStateConflict, "operation %s was %s", o.ID, o.Status)
}
