package diskroom

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

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

// Watch runs the work for which there is room of a purpose, and looks meanwhile at what it has used. Its context ends when it
// must not go on.
func (c *Claim) Watch(
	ctx context.Context, purpose Purpose, used func(context.Context) (int64, error), work func(context.Context) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		why := c.watch(ctx, purpose, used)
		if why != nil {
			c.room.log.Warn("a backup's work was stopped", c.fields(why)...)
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
func (c *Claim) watch(ctx context.Context, purpose Purpose, used func(context.Context) (int64, error)) error {
	seen := time.Now()
	for pause := c.room.LookPause; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		began, own := time.Now(), c.reserved(purpose)
		var err error
		own.Used, err = used(ctx)
		pause = max(c.room.LookPause, min(10*time.Since(began), longestPause))
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

// look judges what a piece of work has used, and notes it. Work that has used more than its reservation gets more if
// nobody else was promised that.
func (c *Claim) look(ctx context.Context, own Reservation) error {
	if own.Purpose == Copy && c.of.Quota > 0 && own.Used > CopySize(c.of.Quota) { // the margin is for sorting
		return TooLarge(own.Used, c.of.Quota)
	}
	if own.Purpose == Copy && own.Used > c.most {
		return backup.NotVerified(fmt.Errorf("its copy takes %s, where %s do for most databases of this size and %s are allowed",
			megabytes(own.Used), megabytes(c.most/copyLimit), megabytes(c.most)))
	}
	return c.room.decide(ctx, func(_ *sql.DB, all []Reservation, spare Spare) error {
		if own.Purpose == Copy && spare[own.Disk] < 0 && Newest(all, own) {
			return &noRoom{own.Used, "PostgreSQL's disk has less room than the reserve"}
		}
		if own.Used > own.Bytes {
			bytes, ok := Extend(all, own, spare, margin(own.Used))
			if !ok {
				return outgrown(own)
			}
			own.Bytes = bytes
		}
		c.room.put(own)
		return nil
	})
}

// reserved is what there is for a purpose.
func (c *Claim) reserved(purpose Purpose) (own Reservation) {
	for _, r := range c.room.reserved() {
		if r.is(c.claimant(), purpose) {
			own = r
		}
	}
	return own
}

// TooLarge is BACKUP_NOT_VERIFIED for the copy of an upload that is, or would become, larger than its database may be.
func TooLarge(copied, quota int64) error {
	return backup.NotVerified(fmt.Errorf("its copy takes %s, and the database may have %s", megabytes(copied), megabytes(quota)))
}

func outgrown(own Reservation) error {
	why := fmt.Sprintf("it takes %s, %s were reserved, and there is no room for more", megabytes(own.Used), megabytes(own.Bytes))
	if own.Purpose == Copy {
		return &noRoom{own.Used, why}
	}
	if own.Purpose == Beside {
		return fault.New(fault.BackupStorageFull, "the server has no room to have the database back as it was: %s", why)
	}
	return fault.New(fault.BackupStorageFull, "the backup file is larger than expected: %s", why)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", bytes/1e6) }

// OnceMore makes a copy. One for which there was no room is made once more when there is: what it took is free by then.
func (c *Claim) OnceMore(ctx context.Context, work func() error) error {
	err := work()
	short := asNoRoom(err)
	if short == nil {
		return err
	}
	again := c.reserved(Copy)
	again.Bytes, again.Used, again.Waiting = max(again.Bytes, short.used+margin(short.used)), 0, true
	c.Release(Copy)
	if err := c.take(ctx, []Reservation{again}, true); err != nil {
		return err
	}
	return work()
}

const diskFull = "53100"

// IsFull reports whether a copy failed for want of room.
func IsFull(err error) bool { return asNoRoom(err) != nil }

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
