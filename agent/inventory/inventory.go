// Package inventory lists what of the service's a server has: the databases of the ledger as the ledger and PostgreSQL have them,
// what else bears a mark of the agent's, and the files. It says what is there, never whether that is right, and changes nothing.
package inventory

import (
	"context"
	"database/sql"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/store"
)

// Lister answers questions about what there is.
type Lister struct {
	db      *sql.DB // maintenance database
	wanted  pooler.Read
	pooler  *pooler.Pooler
	files   *store.Store
	failure func(database string) string // of a forward
	turn    chan struct{}                // one question at a time: they share the connections with the commands of all customers
}

// New makes a lister. wanted is the state that PgBouncer is to have, and failure says why clients of a database could not be sent
// on to another server.
func New(
	db *sql.DB, wanted pooler.Read, p *pooler.Pooler, files *store.Store, failure func(database string) string,
) *Lister {
	return &Lister{db: db, wanted: wanted, pooler: p, files: files, failure: failure, turn: make(chan struct{}, 1)}
}

// answerTime bounds one answer, with the wait for its turn.
const answerTime = 20 * time.Second

// inTurn answers a question when nobody else's is answered.
func inTurn[R any](ctx context.Context, l *Lister, answer func(context.Context) (R, error)) (found R, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		return answer(ctx)
	case <-ctx.Done():
		return found, ctx.Err()
	}
}

// atOnce reads everything as it is at one moment. Nobody waits for it, and it waits for no customer for long.
func atOnce[R any](ctx context.Context, l *Lister, read func(context.Context, *sql.Tx) (R, error)) (R, error) {
	return inTurn(ctx, l, func(ctx context.Context) (found R, err error) {
		tx, err := l.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return found, err
		}
		defer tx.Rollback() // it has written nothing
		if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '3s'"); err != nil {
			return found, err
		}
		return read(ctx, tx)
	})
}
