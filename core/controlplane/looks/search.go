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
	question, input := recovery.Question{Query: q.Query, Until: q.Until, Key: key[:]}, recovery.FindInput{}
	if err := mayStart(r); err != nil {
		return o, err
	}
	w, err := l.past.Window(ctx, r)
	if err != nil {
		return o, err
	}
	input.From, input.To, input.Gaps = w.From, l.base.Clock.Now().UTC().Truncate(time.Second), w.Gaps
	if q.From != nil {
		input.From = *q.From
	}
	if q.To != nil {
		input.To = *q.To
	}
	if !input.From.IsZero() && !input.To.After(input.From) {
		return o, fault.Invalid("to", "must be later than from")
	}
	return l.start(ctx, r, asked{
		kind: KindSearch, route: recovery.SearchRoute, key: q.Key, fingerprint: q.Fingerprint(r.Record().ID),
		moments: []time.Time{input.From, input.To}, input: input, secret: question,
		requested: audit.SearchRequested, details: between(input.From, input.To),
	})
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
