package follow

import (
	"context"
	"database/sql"
	"time"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/id"
)

// PostgreSQL ends a subscription on any error of its worker: on a change that cannot be repeated, and also on a connection that
// breaks off. So it is begun again, and only one that ends again and again at once does not come to an end.

const (
	// mostRevived is how often a subscription is begun again that ends within revivedFor each time.
	mostRevived = 5
	revivedFor  = 20 * time.Second
)

// revival is how often a subscription was begun again of late, and when last.
type revival struct {
	times int
	last  time.Time
}

// revive begins a subscription again; false: it has ended too often.
func (x *Target) revive(ctx context.Context, op id.OperationID, d ledger.Database) (bool, error) {
	x.mu.Lock()
	r := x.revived[op]
	if time.Since(r.last) > revivedFor {
		r.times = 0
	}
	r.times++
	r.last = time.Now()
	x.revived[op] = r
	x.mu.Unlock()
	if r.times > mostRevived {
		return false, nil
	}
	enable := "ALTER SUBSCRIPTION " + pg.Ident(NameOf(op)) + " ENABLE"
	return true, x.inside(ctx, d.Name, func(db *sql.DB) error { return pg.Atomically(ctx, db, enable) })
}
