// Package lockroom shares out PostgreSQL's table of locks.
//
// All sessions of a server have one table of locks, of a fixed size. While it is full nobody gets a lock that needs an entry
// there, and log-ins, writes and the agent's own work fail. Customers' sessions have an eighth of it, which the guard holds them
// to, and the agent's dumps and copies a half, which they ask for here. The rest stays free: it is what customers' sessions can
// fill until the guard has looked.
package lockroom

import (
	"context"
	"fmt"
	"sync"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Table is how much room there is for locks. PostgreSQL adds some more, on which nothing here counts.
type Table struct {
	Each    int // entries for each session and prepared transaction: max_locks_per_transaction
	Objects int // that can be locked at a time

	// The same of predicate locks, which serializable transactions have beside it, in a table of their own.
	EachPredicate, Predicates int
}

// Ask reads the size from the server's settings.
func Ask(ctx context.Context, q pg.Querier) (t Table, err error) {
	const query = `SELECT current_setting('max_locks_per_transaction')::int, current_setting('max_pred_locks_per_transaction')::int,
		current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int`
	var sessions int
	err = q.QueryRowContext(ctx, query).Scan(&t.Each, &t.EachPredicate, &sessions)
	t.Objects, t.Predicates = t.Each*sessions, t.EachPredicate*sessions
	return t, err
}

// ForCustomers is how many entries customers' sessions have together.
func (t Table) ForCustomers() int { return t.Objects / 8 }

// PredicatesForCustomers is a quarter of those: nothing of the agent's needs one.
func (t Table) PredicatesForCustomers() int { return t.Predicates / 4 }

// forJobs is how many objects the agent's dumps and copies lock together. Up to three sessions of a dump lock the same ones, and
// for those PostgreSQL has twice as many entries as for objects.
func (t Table) forJobs() int { return t.Objects / 2 }

// ForDatabase is how many tables, indexes, sequences and views a database can have that is to be backed up and restored. It is
// also what the jobs of one account have together.
func (t Table) ForDatabase() int { return t.forJobs() / 2 }

// Relations counts what a database has of these. A dump locks most of them, and a restore gives all of them to their owners in
// one transaction.
func Relations(ctx context.Context, q pg.Querier) (int, error) {
	return pg.One[int](ctx, q, `SELECT count(*) FROM pg_class WHERE oid >= 16384`)
}

// admit returns BACKUP_CONFLICT for a database with too many relations.
func (t Table) admit(relations int) error {
	if most := t.ForDatabase(); relations > most {
		return fault.New(fault.BackupConflict, "the database has %d tables, indexes, sequences and views, and with more than %d "+
			"it cannot be backed up or restored on this server: remove some of them, or ask the operator for a larger "+
			"max_locks_per_transaction", relations, most)
	}
	return nil
}

// Claim is what a job is going to lock.
type Claim struct {
	By      string       // the login that does it
	Account id.AccountID // whose database it is; empty where that is not known, or where it takes no longer than the agent likes
	Objects int
}

// Room is what the agent's jobs have of the table. Its zero value is ready, and it is safe for concurrent use.
type Room struct {
	mu    sync.Mutex
	taken map[*Claim]struct{}
	freed chan struct{} // closed when something was given back
}

// Take takes the locks of a claim. It waits until there is room, or until ctx ends; jobs are few, so that none waits for long.
// BACKUP_CONFLICT: the database has so many relations that it would not be admitted to an idle server either.
func (r *Room) Take(ctx context.Context, t Table, c Claim) (release func(), err error) {
	if err := t.admit(c.Objects); err != nil {
		return nil, err
	}
	for {
		if release, freed := r.try(t, &c); release != nil {
			return release, nil
		} else if err := waitFor(ctx, freed); err != nil {
			return nil, err
		}
	}
}

func waitFor(ctx context.Context, freed <-chan struct{}) error {
	select {
	case <-freed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for room among the locks: %w", ctx.Err())
	}
}

// try takes the room or returns what is closed when there is more.
func (r *Room) try(t Table, c *Claim) (release func(), freed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, own := c.Objects, c.Objects
	for other := range r.taken {
		all += other.Objects
		if c.Account != "" && other.Account == c.Account {
			own += other.Objects
		}
	}
	if all <= t.forJobs() && own <= t.ForDatabase() {
		if r.taken == nil {
			r.taken = map[*Claim]struct{}{}
		}
		r.taken[c] = struct{}{}
		return func() { r.giveBack(c) }, nil
	}
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	return nil, r.freed
}

func (r *Room) giveBack(c *Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, c)
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// Taken is what is taken by login, and all of it.
func (r *Room) Taken() (by map[string]int, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by = map[string]int{}
	for c := range r.taken {
		by[c.By] += c.Objects
		all += c.Objects
	}
	return by, all
}
