package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

const (
	// longestPause is the longest pause between two looks. Where looking takes long, since the size of a copy is that of each of
	// its files, the pauses are longer.
	longestPause = 10 * time.Second
	// blindTime is how long looking may fail before the work is stopped.
	blindTime = time.Minute
)

// noRoom is why a copy was stopped although nothing is wrong with it.
type noRoom struct {
	used int64
	why  string
}

func (n *noRoom) Error() string { return "the copy was stopped: " + n.why }

// watched runs a piece of work and looks at what it has used meanwhile. The work's context ends when it must not go on.
func (c *claim) watched(
	ctx context.Context, used func(context.Context) (diskroom.Reservation, error), work func(context.Context) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		why := c.watch(ctx, used)
		if why != nil {
			c.b.cfg.Log.Warn("a backup's work was stopped", zap.String("operationId", string(c.req.OperationID)),
				zap.String("databaseId", string(c.req.DatabaseID)), zap.String("database", c.req.Database), zap.Error(why))
			cancel(why)
		}
		ended <- why
	}()
	err := work(ctx)
	cancel(nil)
	if why := <-ended; err != nil && why != nil && errors.Is(context.Cause(ctx), why) {
		return why
	}
	return err
}

// watch returns why the work must not go on, and nil when it has ended.
func (c *claim) watch(ctx context.Context, used func(context.Context) (diskroom.Reservation, error)) error {
	seen := time.Now()
	for pause := c.b.cfg.LookPause; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		own, err := used(ctx)
		pause = max(c.b.cfg.LookPause, min(10*time.Since(began), longestPause))
		if err == nil {
			err = c.look(ctx, own)
		}
		switch {
		case err == nil:
			seen = time.Now()
		case errors.As(err, new(*noRoom)), errors.As(err, new(*fault.Error)):
			return err
		case ctx.Err() == nil && time.Since(seen) > blindTime:
			return fmt.Errorf("what the backup uses could not be seen: %w", err)
		}
	}
}

// look judges what a piece of work has used, and writes it down. Work that has used more than its reservation gets more if
// nobody else was promised that.
func (c *claim) look(ctx context.Context, own diskroom.Reservation) error {
	if own.Purpose == diskroom.Copy && c.quota > 0 && own.Used > copySize(c.quota) { // the margin is for sorting
		return tooLarge(own.Used, c.quota)
	}
	if own.Purpose == diskroom.Copy && own.Used > c.limit {
		return notVerified(fmt.Errorf("its copy takes %s, where %s do for most databases of this size and %s are allowed",
			megabytes(own.Used), megabytes(c.limit/copyLimit), megabytes(c.limit)))
	}
	err := c.b.reservations.decide(ctx, func(tx *sql.Tx) error {
		all, err := c.b.list(ctx, tx)
		if err != nil {
			return err
		}
		spare, err := c.b.spare()
		if err != nil {
			return err
		}
		if own.Purpose == diskroom.Copy && spare[own.Disk] < 0 && diskroom.Newest(all, own) {
			return &noRoom{own.Used, "PostgreSQL's disk has less room than the reserve"}
		}
		if own.Used > own.Bytes {
			bytes, ok := diskroom.Extend(all, own, spare, margin(own.Used))
			if !ok {
				return outgrown(own)
			}
			own.Bytes = bytes
		}
		return put(ctx, tx, own)
	})
	if err == nil {
		c.held[own.Purpose] = own
	}
	return err
}

// tooLarge is BACKUP_NOT_VERIFIED for the copy of an upload that is, or would become, larger than its database may be.
func tooLarge(copied, quota int64) error {
	return notVerified(fmt.Errorf("its copy takes %s, and the database may have %s", megabytes(copied), megabytes(quota)))
}

func outgrown(own diskroom.Reservation) error {
	why := fmt.Sprintf("it takes %s, %s were reserved, and there is no room for more", megabytes(own.Used), megabytes(own.Bytes))
	if own.Purpose == diskroom.Copy {
		return &noRoom{own.Used, why}
	}
	return fault.New(fault.BackupStorageFull, "the backup file is larger than expected: %s", why)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", bytes/1e6) }

// dump makes the set of files, and then gives back the room that was reserved for it.
func (c *claim) dump(ctx context.Context) (m backup.StoredManifest, err error) {
	used := func(context.Context) (own diskroom.Reservation, err error) {
		own = c.held[diskroom.Dump]
		own.Used, err = c.b.store.Written(c.req.DatabaseID, c.req.Filename)
		return own, err
	}
	err = c.watched(ctx, used, func(ctx context.Context) (err error) {
		m, err = c.b.dump(ctx, c.req, c.progress)
		return err
	})
	if err != nil {
		return backup.StoredManifest{}, err
	}
	return m, c.release(ctx, diskroom.Dump)
}

// verify verifies the file.
func (c *claim) verify(ctx context.Context, m backup.StoredManifest) error {
	err := c.onceMore(ctx, func() error { return c.b.verify(ctx, c, m) })
	if asNoRoom(err) != nil {
		return fault.Wrap(err, fault.BackupStorageFull, "the server has no room for the copy that verifies the backup")
	}
	return err
}

// onceMore makes a copy. One for which there was no room is made once more when there is: what it took is free by then.
func (c *claim) onceMore(ctx context.Context, work func() error) error {
	err := work()
	short := asNoRoom(err)
	if short == nil {
		return err
	}
	again := c.held[diskroom.Copy]
	again.Bytes, again.Used, again.Waiting = max(again.Bytes, short.used+margin(short.used)), 0, true
	if err := c.release(ctx, diskroom.Copy); err != nil {
		return err
	}
	if err := c.take(ctx, []diskroom.Reservation{again}, true); err != nil {
		return err
	}
	return work()
}

const diskFull = "53100"

// asNoRoom also takes PostgreSQL's word that its disk is full.
func asNoRoom(err error) *noRoom {
	var short *noRoom
	var restoring *pgconn.PgError
	switch {
	case errors.As(err, &short):
		return short
	case errors.As(err, &restoring) && restoring.Code == diskFull, pq.As(err, diskFull) != nil:
		return &noRoom{why: "PostgreSQL's disk is full"}
	}
	return nil
}

// copying runs work on a copy, and looks meanwhile at the copy's size with that of its sessions' temporary files, whose names
// hold the process. Files that parallel workers share are in folders, which are not listed: for those there is the reserve.
func (c *claim) copying(ctx context.Context, copied *isolated, work func(context.Context) error) error {
	const size = `SELECT pg_database_size(d.oid) + coalesce((SELECT sum(t.size) FROM pg_ls_tmpdir() t
			JOIN pg_stat_activity a ON t.name LIKE 'pgsql\_tmp' || a.pid || '.%' WHERE a.datid = d.oid), 0)
		FROM pg_database d WHERE d.datname = $1`
	used := func(ctx context.Context) (own diskroom.Reservation, err error) {
		own = c.held[diskroom.Copy]
		err = copied.admin.QueryRowContext(ctx, size, copied.name()).Scan(&own.Used)
		return own, err
	}
	return c.watched(ctx, used, func(ctx context.Context) error { return copied.within(ctx, work) })
}
