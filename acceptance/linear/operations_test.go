package linear

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// disturb stops and starts the database, backs it up and restores it, until the clients have ended their work. The database
// serves in the end; runs says whether it does in the beginning.
func (c *client) disturb(working *sync.WaitGroup, runs bool) {
	end := time.Now().Add(patience)
	idle := make(chan struct{})
	go func() {
		working.Wait()
		close(idle)
	}()
	for {
		calm := time.Duration(c.dice.Int64N(int64(longestCalm)))
		if !runs {
			calm /= 4
		}
		select {
		case <-idle:
			for ; !runs; time.Sleep(calm) {
				c.inTime(end)
				runs = c.disturbs(c.lifecycle(database.Start))
			}
			return
		case <-time.After(calm):
		}
		switch roll := c.dice.IntN(6); {
		case !runs:
			runs = c.disturbs(c.lifecycle(database.Start))
		case roll == 0:
			runs = c.disturbs(c.lifecycle(database.Stop))
		case roll == 1:
			c.backUp()
		default:
			runs = c.disturbs(c.restore)
		}
	}
}

// longestCalm is how long a database is left as it is.
const longestCalm = 6 * time.Millisecond

// noOperation are the errors of an operation that was not begun, or whose end is not known yet.
var noOperation = []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.BackupNotVerified, fault.LegacyRoleConflict}

// disturbs begins an operation and waits for its end. It reports whether the database serves then.
func (c *client) disturbs(begin func(*plane) error) (runs bool) {
	one := func(f fact) { c.call(c.number, func() []fact { return []fact{f} }) }
	one(fact{is: disturbed})
	runs = c.operate(begin)
	one(fact{is: rested, yes: runs})
	return runs
}

func (c *client) operate(begin func(*plane) error) (runs bool) {
	p := c.plane()
	if err := begin(p); err != nil && !slices.Contains(noOperation, fault.CodeOf(err)) {
		c.call(c.number, func() []fact { return surprise(err) })
	}
	for end := time.Now().Add(patience); ; {
		c.inTime(end)
		open, status := c.standing()
		if !open {
			return status == database.Active
		}
		if worked, err := p.Work.RunNext(c.ctx); err != nil || !worked {
			time.Sleep(100 * time.Microsecond) // it waits for its turn, by the clock that the background moves
		}
	}
}

// inTime fails the test where something does not come to its end.
func (c *client) inTime(end time.Time) {
	if time.Now().After(end) {
		c.t.Fatalf("seed %d: the database is not at rest", c.seed)
	}
}

// standing reports whether an operation of the database is open, and its status.
func (c *client) standing() (open bool, status database.Status) {
	ok(c.t, c.store.View(c.ctx, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Operations().Open(ctx, c.db.Record.ID)
		if open = err == nil; errors.Is(err, ports.ErrNoRow) {
			err = nil
		}
		return err
	}))
	return open, c.reach(c.planes[0]).Record().Status
}

func (c *client) lifecycle(e database.Event) func(*plane) error {
	return func(p *plane) error {
		_, err := p.Databases.SetLifecycle(c.ctx, c.reach(p), e)
		return err
	}
}

// backUp disturbs nobody: it only reads.
func (c *client) backUp() {
	c.operate(func(p *plane) error {
		_, err := p.Backups.Start(c.ctx, c.reach(p))
		return err
	})
}

// restore puts back the newest backup.
func (c *client) restore(p *plane) error {
	reached, err := p.Access.Reach(c.ctx, c.caller, c.db.Record.ID, account.Own, rollout.Restore)
	if err != nil {
		return err
	}
	list, _, err := p.Backups.List(c.ctx, reached, ports.Page{Limit: 1})
	if err != nil || len(list) == 0 {
		return err
	}
	if _, err = p.Restores.Start(c.ctx, reached, list[0].Filename, restore.Consents{}); err == nil {
		c.call(c.number, func() []fact { return []fact{{is: restored}} })
	}
	return err
}
