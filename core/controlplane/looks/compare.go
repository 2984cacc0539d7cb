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

// KindComparison is the kind of the operations that compare what a database held at two moments.
const KindComparison operation.Kind = "comparison"

// Compare queues a comparison, or returns the one that an earlier request with its key has made. The errors are those of start
// and of recovery.Between.Check.
func (l *Looks) Compare(ctx context.Context, r access.Reached, q recovery.Between) (o operation.Operation, err error) {
	if err := q.Check(); err != nil {
		return o, err
	}
	input := recovery.BetweenInput{From: q.From, To: q.To}
	return l.start(ctx, r, asked{
		kind: KindComparison, route: recovery.ComparisonRoute, key: q.Key, fingerprint: q.Fingerprint(r.Record().ID),
		moments: []time.Time{q.From, q.To}, input: input, requested: audit.ComparisonRequested, details: between(q.From, q.To),
	})
}

func between(from, to time.Time) audit.Details {
	return audit.Details{"from": recovery.Text(from), "to": recovery.Text(to)}
}

func (l *Looks) registerComparisons() {
	register(l, kind[recovery.BetweenInput, command.ComparisonReport]{
		name: KindComparison, call: "compare", finished: audit.ComparisonFinished,
		details: func(in recovery.BetweenInput) audit.Details { return between(in.From, in.To) },
		command: func(t *work.Turn[recovery.BetweenInput]) command.Returning[command.ComparisonReport] {
			return command.CompareMoments{DatabaseID: t.Record.ID, From: t.Input.From, To: t.Input.To}
		},
		result: func(_ *work.Turn[recovery.BetweenInput], r command.ComparisonReport) (any, error) {
			return r.Comparison, nil
		},
	})
}
