package artifact

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// What is reserved follows the size of the database. A dump, compressed, rarely needs half of it; the copy of a verification
// needs as much as the database, on PostgreSQL's own disk, which must not run full: then every database would stop.
func dumpSize(database int64) int64 { return database / 2 }
func copySize(database int64) int64 { return database + margin(database) }

// margin is for what work takes beside the bytes that last: a quarter for the files in which PostgreSQL sorts, for one index
// after the other; and what the smallest database needs all the same. WAL is not counted. It does not add up: max_wal_size bounds
// it for all copies together, and the reserve has room for that.
func margin(size int64) int64 { return size/4 + 64<<20 }

// copyLimit is what a copy may take if there is room for it, in times of its reservation. Its files for sorting can be several
// times what the margin has. But a customer's code runs in the copy, and must not use up the disk because there is room.
const copyLimit = 3

// claim is the room of one backup that this process runs.
type claim struct {
	b        *Backuper
	req      Request
	progress Progress
	held     map[diskroom.Purpose]diskroom.Reservation
	limit    int64        // of the copy
	waiting  string       // the stage of who waits for room
	account  id.AccountID // of a restore
	quota    int64        // of the database that the copy of an upload is to become; 0: none
}

// claim announces a backup. The caller ends the claim.
func (b *Backuper) claim(req Request, progress Progress) *claim {
	b.reservations.begin(req.OperationID)
	return &claim{b: b, req: req, progress: progress, held: make(map[diskroom.Purpose]diskroom.Reservation), waiting: StageQueued}
}

func (c *claim) claimant() diskroom.Claimant { return diskroom.Claimant(c.req.OperationID) }

// end gives back all room. If that fails, the next decision removes the reservations.
func (c *claim) end(ctx context.Context) {
	c.b.reservations.end(c.req.OperationID)
	if len(c.held) > 0 {
		_ = c.release(ctx, "")
	}
}

// release gives back the room for one purpose, or for all where that is empty.
func (c *claim) release(ctx context.Context, purpose diskroom.Purpose) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return c.b.reservations.remove(ctx, c.claimant(), purpose)
}

// reserve waits until there is room for everything that the backup still has to make. It takes all at once: two that each wait
// for what the other has would wait for ever.
func (c *claim) reserve(ctx context.Context) error {
	if err := c.release(ctx, ""); err != nil { // what an earlier attempt could not give back
		return err
	}
	needs, err := c.needs(ctx)
	if err != nil || len(needs) == 0 {
		return err
	}
	return c.take(ctx, needs, false)
}

// needs are the reservations for what is not yet made.
func (c *claim) needs(ctx context.Context) ([]diskroom.Reservation, error) {
	found, _, err := c.b.standing(c.req)
	if err != nil || found == foreign || found == damaged || found == complete {
		return nil, err
	}
	var needs []diskroom.Reservation
	need := func(purpose diskroom.Purpose, d store.Disk, bytes int64) {
		needs = append(needs, diskroom.Reservation{
			Claimant: c.claimant(), Purpose: purpose, Disk: diskroom.Disk(d.ID), Bytes: bytes, Waiting: true,
		})
	}
	size, err := c.b.reservations.sizeOf(ctx, c.req.Database)
	if err != nil {
		return nil, noDatabase(err)
	}
	files, data, err := c.b.disks()
	if err != nil {
		return nil, err
	}
	if found == nothing {
		need(diskroom.Dump, files, dumpSize(size))
	}
	if c.req.Verify {
		need(diskroom.Copy, data, copySize(size))
		c.limit = copyLimit * copySize(size)
	}
	return needs, nil
}

// disks are those of the backup files and of the databases.
func (b *Backuper) disks() (files, data store.Disk, err error) {
	if files, err = b.store.Disk(); err != nil || b.cfg.DataDir == "" {
		return files, store.Unseen, err
	}
	data, err = b.store.DiskAt(b.cfg.DataDir)
	return files, data, err
}

func (b *Backuper) spare() (diskroom.Spare, error) {
	files, data, err := b.disks()
	return diskroom.Spare{diskroom.Disk(files.ID): files.Free, diskroom.Disk(data.ID): data.Free}, err
}

// take waits for room, at most RoomWait. What would not fit even if no other backup were made is refused at once, unless the room
// has been there: whoever has used it up, be it a customer, may give it back.
func (c *claim) take(ctx context.Context, needs []diskroom.Reservation, wasThere bool) error {
	late := time.NewTimer(c.b.cfg.RoomWait)
	defer late.Stop()
	for {
		verdict, err := c.ask(ctx, needs)
		switch {
		case err != nil || verdict == diskroom.Admitted:
			return err
		case verdict == diskroom.Full && !wasThere:
			return store.ErrFull
		}
		c.progress(c.waiting, 0, command.Bytes{})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fault.New(fault.BackupStorageFull, "the server had no room for another backup for %s", c.b.cfg.RoomWait)
		case <-time.After(c.b.cfg.LookPause):
		}
	}
}

// ask writes the reservations, which say of themselves that they wait until they are admitted.
func (c *claim) ask(ctx context.Context, needs []diskroom.Reservation) (verdict diskroom.Verdict, err error) {
	err = c.b.reservations.decide(ctx, func(tx *sql.Tx) error {
		for _, r := range needs {
			c.held[r.Purpose] = r
			if err := put(ctx, tx, r); err != nil {
				return err
			}
		}
		all, err := c.b.list(ctx, tx)
		if err != nil {
			return err
		}
		spare, err := c.b.spare() // read last: it may lack more than is counted as used, and never less
		if err != nil {
			return err
		}
		switch verdict = diskroom.Decide(all, c.claimant(), spare); verdict {
		case diskroom.Wait:
			return c.b.makeWay(ctx, tx, all, c.claimant(), spare)
		case diskroom.Full:
			return nil
		case diskroom.Admitted:
		}
		for _, r := range needs {
			r.Waiting = false
			c.held[r.Purpose] = r
			if err := put(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	return verdict, err
}

// Room returns BACKUP_STORAGE_FULL if a dump of a database of this size had no room even if no other backup were made.
func (b *Backuper) Room(ctx context.Context, size int64) error {
	all, err := b.allReservations(ctx)
	if err != nil {
		return err
	}
	files, err := b.store.Disk()
	if err != nil {
		return err
	}
	asks := diskroom.Reservation{Purpose: diskroom.Dump, Disk: diskroom.Disk(files.ID), Bytes: dumpSize(size), Waiting: true}
	if diskroom.Decide(append(all, asks), asks.Claimant, diskroom.Spare{asks.Disk: files.Free}) == diskroom.Full {
		return store.ErrFull
	}
	return nil
}

// sizeOf is the size of a database on disk.
func (r *reservations) sizeOf(ctx context.Context, database string) (size int64, err error) {
	db, err := r.open()
	if err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, `SELECT pg_database_size($1::name)`, database).Scan(&size); err != nil {
		return 0, fmt.Errorf("size of the database: %w", err)
	}
	return size, nil
}

func (b *Backuper) allReservations(ctx context.Context) ([]diskroom.Reservation, error) {
	db, err := b.reservations.open()
	if err != nil {
		return nil, err
	}
	return b.list(ctx, db)
}
