package ledger

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/command"
)

// memory is how long the ledger keeps an operation after its last command. Removing it loses the epoch, by which a worker that
// was suspended beyond its lease is refused, and the results of its commands. So memory must be far longer than a command can
// be delayed: a lease and a request last minutes, an idle connection no longer, and a control plane that has not received an
// outcome asks again within minutes, which counts as a command. Thirty days also leave time to restore a control plane from a
// backup.
const memory = 30 * 24 * time.Hour

// prune forgets operations that ended long ago. It keeps what is unfinished, however old: a command without a result, or a
// close that has not undone everything. It keeps the one that made a database for as long as that stands, so that closing it
// is refused as completed and drops nothing. Generations of databases stay too. It also forgets the logins that were removed
// long ago: PgBouncer has read files without them since.
const prune = `
	WITH old AS (
		SELECT o.id FROM ledger.operation o
		WHERE o.spoken_at < now() - $1 * interval '1 second'
		  AND NOT EXISTS (SELECT FROM ledger.database d WHERE d.made_by = o.id)
		  AND CASE WHEN o.closed
		      THEN EXISTS (SELECT FROM ledger.command c WHERE c.operation_id = o.id AND c.kind = $2 AND c.result IS NOT NULL)
		      ELSE NOT EXISTS (SELECT FROM ledger.command c WHERE c.operation_id = o.id AND c.result IS NULL) END
		FOR UPDATE OF o SKIP LOCKED),
	commands AS (DELETE FROM ledger.command c USING old WHERE c.operation_id = old.id),
	generations AS (DELETE FROM ledger.generation g USING old WHERE g.kind = $2 AND g.resource = $3 || old.id),
	peers AS (DELETE FROM ledger.peer p USING old WHERE p.operation_id = old.id),
	lines AS (DELETE FROM ledger.line l USING old WHERE l.operation_id = old.id),
	jobs AS (DELETE FROM ledger.job j USING old WHERE j.operation_id = old.id),
	former AS (DELETE FROM pooler.former f WHERE f.gone < now() - $1 * interval '1 second')
	DELETE FROM ledger.operation o USING old WHERE o.id = old.id`

// Prune forgets what the ledger need not remember any longer, and returns how many operations that were. A file that would be
// forgotten with its operation is removed before.
func (l *Ledger) Prune(ctx context.Context) (int64, error) {
	if err := l.discardForgotten(ctx); err != nil {
		return 0, err
	}
	done, err := l.db.ExecContext(ctx, prune, memory.Seconds(), string(command.Close{}.About().Kind), command.OperationResource(""))
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
