package diskroom

import (
	"context"
	"database/sql"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/health"
	"github.com/pgherd/pgherd/core/id"
)

// What is reserved follows the size of the database. A dump, compressed, rarely needs half of it; the copy of a verification
// needs as much as the database, on PostgreSQL's own disk, which must not run full: then every database would stop.

// DumpSize is what is reserved for the dump of a database.
func DumpSize(database int64) int64 { return database / 2 }

// CopySize is what is reserved for the copy of one.
func CopySize(database int64) int64 { return database + margin(database) }

// margin is for what work takes beside the bytes that last: a quarter for the files in which PostgreSQL sorts, for one index
// after the other; and what the smallest database needs all the same. WAL is not counted. It does not add up: max_wal_size bounds
// it for all copies together, and the reserve has room for that.
func margin(size int64) int64 { return size/4 + health.LeastRoom }

// copyLimit is what a copy may take if there is room for it, in times of its reservation. Its files for sorting can be several
// times what the margin has. But a customer's code runs in the copy, and must not use up the disk because there is room.
const copyLimit = 3

// Claim is the room of one operation that this process runs.
type Claim struct {
	room *Room
	of   Work
	most int64 // that the copy may take
}

// Work is what a claim is for.
type Work struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID
	Database    string // its name in PostgreSQL
	Quota       int64  // of the database that the copy is to become; 0: none
	Waits       func() // is told while the work waits for room
}

// Claim announces a piece of work. The caller ends the claim.
func (x *Room) Claim(of Work) *Claim {
	return &Claim{room: x, of: of}
}

func (c *Claim) claimant() Claimant { return Claimant(c.of.OperationID) }

func (c *Claim) fields(err error) []zap.Field {
	return []zap.Field{
		zap.String("operationId", string(c.of.OperationID)), zap.String("databaseId", string(c.of.DatabaseID)),
		zap.String("database", c.of.Database), zap.Error(err),
	}
}

// End gives back all room.
func (c *Claim) End() { c.room.remove(c.claimant(), "") }

// Release gives back the room for one purpose.
func (c *Claim) Release(purpose Purpose) { c.room.remove(c.claimant(), purpose) }

// Reserve waits until there is room for everything that the work still has to make: needs says what that is. It takes all at
// once: two that each wait for what the other has would wait for ever.
func (c *Claim) Reserve(ctx context.Context, needs func(context.Context) ([]Need, error)) error {
	list, err := needs(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	files, data, err := c.room.Disks()
	if err != nil {
		return err
	}
	asks := make([]Reservation, 0, len(list))
	for _, n := range list {
		r := Reservation{
			Claimant: c.claimant(), Purpose: n.Purpose, Disk: Disk(files.ID), Bytes: n.Bytes, Waiting: true, Lasting: n.Lasting,
		}
		if n.Purpose == Copy {
			r.Disk, c.most = Disk(data.ID), copyLimit*max(n.Bytes, n.Most)
		}
		asks = append(asks, r)
	}
	return c.take(ctx, asks, false)
}

// Need is what a piece of work still has to make.
type Need struct {
	Purpose Purpose
	Bytes   int64
	Most    int64 // that a copy may need instead, if there is room for it
	Lasting *Lasting
}

// take waits for room, at most RoomWait. What would not fit even if no other backup were made is refused at once, unless the room
// has been there: whoever has used it up, be it a customer, may give it back.
func (c *Claim) take(ctx context.Context, needs []Reservation, wasThere bool) error {
	late := time.NewTimer(c.room.RoomWait)
	defer late.Stop()
	for {
		verdict, err := c.ask(ctx, needs)
		switch {
		case err != nil || verdict == Admitted:
			return err
		case verdict == Full && !wasThere:
			return store.ErrFull
		}
		c.of.Waits()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fault.New(fault.BackupStorageFull, "the server had no room for another backup for %s", c.room.RoomWait)
		case <-time.After(c.room.LookPause):
		}
	}
}

// ask enters the reservations, which say of themselves that they wait until they are admitted.
func (c *Claim) ask(ctx context.Context, needs []Reservation) (verdict Verdict, err error) {
	for _, r := range needs {
		c.room.put(r)
	}
	err = c.room.decide(ctx, func(db *sql.DB, all []Reservation, spare Spare) error {
		switch verdict = Decide(all, c.claimant(), spare); verdict {
		case Wait:
			return c.room.makeWay(ctx, db, all, c.claimant(), spare)
		case Full:
			return nil
		case Admitted:
		}
		for _, r := range needs {
			r.Waiting = false
			c.room.put(r)
		}
		return nil
	})
	return verdict, err
}
