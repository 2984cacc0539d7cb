package looks

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// KindRescue is the kind of the operations that put tables as they were into a schema of the database as it is.
const KindRescue operation.Kind = "rescue"

// Rescue queues a rescue, or returns the one that an earlier request with its key has made. The errors are those of start.
func (l *Looks) Rescue(ctx context.Context, r access.Reached, q recovery.Rescue) (operation.Operation, error) {
	input := recovery.RescueInput{At: q.At, Tables: q.Tables, MaxBytes: r.Record().StorageQuota()}
	return l.start(ctx, r, asked{
		kind: KindRescue, route: recovery.RescueRoute, key: q.Key, fingerprint: q.Fingerprint(r.Record().ID),
		moments: []time.Time{q.At}, input: input, requested: audit.RescueRequested, details: rescueDetails(input),
	})
}

func rescueDetails(in recovery.RescueInput) audit.Details {
	return audit.Details{
		recovery.Field: recovery.Text(in.At), "tables": recovery.Names(in.Tables), "schema": recovery.RescueSchema(in.At),
	}
}

func (l *Looks) registerRescues() {
	register(l, kind[recovery.RescueInput, command.RescueReport]{
		name: KindRescue, call: "rescue", finished: audit.RescueFinished, details: rescueDetails,
		command: func(t *work.Turn[recovery.RescueInput]) command.Returning[command.RescueReport] {
			return command.Rescue{
				DatabaseID: t.Record.ID, At: t.Input.At, Tables: t.Input.Tables, MaxBytes: t.Input.MaxBytes,
			}
		},
		result: func(t *work.Turn[recovery.RescueInput], r command.RescueReport) (any, error) {
			return recovery.RescueResult{
				At: t.Input.At, Schema: recovery.RescueSchema(t.Input.At), Tables: r.Tables, Notes: append([]string{}, r.Notes...),
			}, nil
		},
	})
}
