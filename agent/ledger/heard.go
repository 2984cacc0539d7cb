package ledger

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// heardTime bounds one statement.
const heardTime = 5 * time.Second

// The conditions that somebody has vouched for an operation, and that nobody has. What is older does not count: the metadata keep
// an operation for thirty days at least, and need not have it then.
const (
	vouchedLately = "vouched_at > now() - interval '29 days'"
	unvouched     = "vouched_at IS NULL AND spoken_at > now() - interval '29 days'"
)

// Heard tells which operations nobody has vouched for, and the last one that somebody has.
func (l *Ledger) Heard(ctx context.Context, _ command.AskHeard) (h command.Heard, err error) {
	const fresh = "SELECT id FROM ledger.operation WHERE " + unvouched + " ORDER BY id LIMIT $1"
	const last = "SELECT id FROM ledger.operation WHERE " + vouchedLately + " ORDER BY vouched_at DESC, id DESC LIMIT 1"
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	list, err := pg.Column(ctx, l.db, fresh, command.HeardAtOnce)
	for _, o := range list {
		h.Operations = append(h.Operations, id.OperationID(o))
	}
	h.More = len(list) == command.HeardAtOnce
	if err != nil {
		return h, err
	}
	list, err = pg.Column(ctx, l.db, last)
	for _, o := range list {
		h.Last = id.OperationID(o)
	}
	return h, err
}

// Vouch notes that the metadata have operations.
func (l *Ledger) Vouch(ctx context.Context, q command.Vouch) (none command.None, err error) {
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	if q.All {
		const all = "UPDATE ledger.operation SET vouched_at = '-infinity' WHERE vouched_at IS DISTINCT FROM '-infinity'"
		_, err = l.db.ExecContext(ctx, all)
		return none, err
	}
	var ids pq.StringArray
	for _, o := range q.Operations {
		ids = append(ids, string(o))
	}
	const some = "UPDATE ledger.operation SET vouched_at = clock_timestamp() WHERE id = ANY ($1) AND vouched_at IS NULL"
	_, err = l.db.ExecContext(ctx, some, ids)
	return none, err
}

// Vouched refuses a database with an operation that nobody has vouched for, beside this one: who wants to remove something of it
// may not know what has become of it since. Before anybody has vouched for anything, it refuses none.
func (l *Ledger) Vouched(ctx context.Context, db id.DatabaseID, but id.OperationID) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.operation WHERE ` + vouchedLately + `)
		AND EXISTS (SELECT FROM (SELECT id FROM ledger.operation WHERE ` + unvouched + `) o
			JOIN ledger.command c ON c.operation_id = o.id
			WHERE o.id <> $2 AND (c.resource = $1 OR starts_with(c.resource, $1 || '/')))`
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	behind, err := pg.One[bool](ctx, l.db, query, DatabaseResource(string(db)), string(but))
	if err == nil && behind {
		err = command.Refuse(command.ReasonBehind, "nobody has vouched for an operation on the database")
	}
	return err
}
