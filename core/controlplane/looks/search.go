package looks

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// KindSearch is the kind of the operations that find the second of a change.
const KindSearch operation.Kind = "search"

// Search queues a search, or returns the one that an earlier request with its key has made. Query and answers are in the
// operation alone, encrypted: neither the log nor the activity has them, and who may not search is shown neither. The errors are
// those of start, of recovery.Find.Check and of Moments.Window.
func (l *Looks) Search(ctx context.Context, r access.Reached, q recovery.Find) (o operation.Operation, err error) {
	if err := q.Check(); err != nil {
		return o, err
	}
	key := l.base.Entropy.Seed()
	return l.start(ctx, r, asked{
		kind: KindSearch, route: recovery.SearchRoute, key: q.Key, fingerprint: q.Fingerprint(r.Record().ID),
		secret: recovery.Question{Query: q.Query, Until: q.Until, Key: key[:]}, requested: audit.SearchRequested,
		complete: func(ctx context.Context, a *asked) error {
			in, err := l.span(ctx, r, q)
			a.moments, a.input, a.details = []time.Time{in.From, in.To}, in, between(in.From, in.To)
			return err
		},
	})
}

// span is what is looked through: what can be had back, unless the request says less.
func (l *Looks) span(ctx context.Context, r access.Reached, q recovery.Find) (in recovery.FindInput, err error) {
	w, err := l.past.Window(ctx, r)
	if err != nil {
		return in, err
	}
	in.From, in.To, in.Gaps = w.From, l.base.Clock.Now().UTC().Truncate(time.Second), w.Gaps
	if q.From != nil {
		in.From = *q.From
	}
	if q.To != nil {
		in.To = *q.To
	}
	if !in.From.IsZero() && !in.To.After(in.From) {
		return in, fault.Invalid("to", "must be later than from")
	}
	return in, nil
}

func (l *Looks) registerSearches() {
	register(l, kind[recovery.FindInput, command.SearchReport]{
		name: KindSearch, call: "search", finished: audit.SearchFinished,
		details: func(in recovery.FindInput) audit.Details { return between(in.From, in.To) },
		secret:  func(in *recovery.FindInput) any { return &in.Question },
		command: func(t *work.Turn[recovery.FindInput]) command.Returning[command.SearchReport] {
			return command.FindMoment{
				DatabaseID: t.Record.ID, From: t.Input.From, To: t.Input.To, Gaps: t.Input.Gaps, Question: t.Input.Question,
			}
		},
		result: func(t *work.Turn[recovery.FindInput], r command.SearchReport) (any, error) {
			return t.Input.Question.Open(t.Of.ID, r.Sealed)
		},
	})
}
