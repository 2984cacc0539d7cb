package backup

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// pastShare is how much of a file's progress it is to have the database back as it was.
const pastShare = 40

func (r Request) moment() archive.Moment {
	return archive.Moment{OperationID: r.OperationID, DatabaseID: r.DatabaseID, At: *r.At}
}

// from has something done with what is to be dumped: the database itself, or a server beside with the database as it was.
func (x *Backups) from(
	ctx context.Context, c *diskroom.Claim, req Request, tell jobs.Tell, do func(source) error,
) error {
	if req.At == nil {
		return do(source{Server: x.Server, database: req.Database, logins: req.Logins})
	}
	used := func(context.Context) (int64, error) { return x.Past.Used(req.OperationID) }
	return c.Watch(ctx, diskroom.Beside, used, func(ctx context.Context) (err error) {
		side, err := x.recovered(ctx, req, tell)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, side.Close())
			c.Release(diskroom.Beside)
		}()
		return do(source{Server: side.Server, database: side.Database, logins: side.Logins, beside: true})
	})
}

func (x *Backups) recovered(ctx context.Context, req Request, tell jobs.Tell) (*archive.Side, error) {
	ctx, cancel := jobs.Within(ctx, "to have the database back as it was", x.Limits.Dump)
	defer cancel()
	side, err := x.Past.Recover(ctx, req.moment(), func(stage string, progress int, bytes command.Bytes) {
		tell(stage, progress*pastShare/100, bytes)
	})
	if late := jobs.Overlong(ctx); err != nil && late != nil {
		err = errors.Join(late, err)
	}
	return side, err
}

// roomBeside is the room for the server beside.
func (x *Backups) roomBeside(ctx context.Context, req Request, size int64) (n diskroom.Need, err error) {
	if x.Past == nil {
		return n, fault.New(fault.PointNotRecoverable, "the database's server keeps no archive")
	}
	bytes, err := x.Past.Room(ctx, req.moment(), size)
	return diskroom.Need{Purpose: diskroom.Beside, Bytes: bytes}, err
}
