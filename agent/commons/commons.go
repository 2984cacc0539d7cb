// Package commons watches what all databases of a server share and no quota of a database bounds: transaction IDs, the queue of
// notifications, and the shared catalogs. One look finds how much is taken and by whom, a pure function for each of them decides
// whose sessions have to go, and one place ends those.
//
// Who takes ends before who is in the way, and nobody is ended for what another account does, as long as there is time: a dump or
// a report of an hour is not wrong because somebody else burns transaction IDs meanwhile.
package commons

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/resting"
)

const (
	// lookPause is between two looks: one session fills the queue of notifications by a fiftieth within a second.
	lookPause = time.Second
	// lookTime bounds a look.
	lookTime = 10 * time.Second
	// freshTime is how old the newest look may be.
	freshTime = 30 * time.Second
)

// Resource is something that all share.
type Resource string

// The resources.
const (
	TransactionIDs Resource = "transaction_ids"
	NotifyQueue    Resource = "notify_queue"
	SharedCatalogs Resource = "shared_catalogs"
)

// Resources lists them.
var Resources = []Resource{TransactionIDs, NotifyQueue, SharedCatalogs}

// Commons watches them.
type Commons struct {
	db      *sql.DB // one connection to the maintenance database
	limits  Limits
	log     *zap.Logger
	seldom  loop.Seldom // for what a customer can bring about again and again
	memory  memory
	rests   *resting.Rests
	trimmed time.Time // when stored settings were last looked at
	latest  atomic.Pointer[Figures]
	ended   map[Resource]*atomic.Int64
}

// Figures are what the newest look found.
type Figures struct {
	At time.Time
	// Ended is how many sessions were ended for each resource. It is there also before the first look.
	Ended map[Resource]int64
	// Kept is how many transaction IDs are not to be reused because of whom: the oldest of a kind, by Keepers.
	Kept map[string]int64
	// Taken is how many transaction IDs were taken since the agent looks.
	Taken uint64
	// Bound is Limits.TransactionIDs.
	Bound int64
	// Multixacts is the age of the oldest multixact ID that a database may hold.
	Multixacts int64
	// Queue is the part of the queue of notifications that is in use, from 0 to 1.
	Queue float64
	// CatalogBytes is the size of the shared catalogs.
	CatalogBytes int64
}

// New makes a watch with a connection of its own, which connects on first use. Limits that are 0 are the defaults. Who comes back
// rests.
func New(s ledger.Server, limits Limits, rests *resting.Rests, log *zap.Logger) (*Commons, error) {
	db, err := s.OpenMaintenance(1)
	if err != nil {
		return nil, err
	}
	c := &Commons{db: db, limits: limits.orDefault(), rests: rests, log: log, ended: make(map[Resource]*atomic.Int64)}
	for _, r := range Resources {
		c.ended[r] = new(atomic.Int64)
	}
	return c, nil
}

// Close closes its connection.
func (c *Commons) Close() error { return c.db.Close() }

// Run looks until ctx ends.
func (c *Commons) Run(ctx context.Context) {
	loop.Run(ctx, c.log, nil, "nobody looks who takes too much of what all share", func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		return lookPause, c.look(ctx)
	})
}

// Figures returns what the newest look found, and whether that is fresh.
func (c *Commons) Figures() (found Figures, fresh bool) {
	if f := c.latest.Load(); f != nil {
		found = *f
	}
	found.Ended = make(map[Resource]int64)
	for r, n := range c.ended {
		found.Ended[r] = n.Load()
	}
	return found, time.Since(found.At) < freshTime
}

// Fresh returns an error unless a look has succeeded of late.
func (c *Commons) Fresh() error {
	if _, fresh := c.Figures(); !fresh {
		return errors.New("what all databases share could not be looked at of late")
	}
	return nil
}

// look finds what is taken, and whose it is where that may be too much, and ends who has to go.
func (c *Commons) look(ctx context.Context) error {
	var s state
	now := time.Now()
	err := observe(ctx, c.db, &s)
	if err != nil {
		return err
	}
	if c.memory.note(&s, now, c.limits) {
		if err := c.sample(ctx, &s); err != nil {
			return err
		}
	}
	verdicts := c.memory.judge(&s, c.limits)
	c.latest.Store(c.memory.figures(&s, now, c.limits))
	return errors.Join(c.end(ctx, verdicts), c.trim(ctx, now))
}
