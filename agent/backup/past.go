package backup

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// pastShare is how much of a file's progress it is to have the database back as it was.
const pastShare = 40

// apart reports whether what is dumped is had back out of an archive.
func (r Request) apart() bool { return r.At != nil || r.Lost != "" }

func (r Request) moment() archive.Moment {
	m := archive.Moment{OperationID: r.OperationID, DatabaseID: r.DatabaseID}
	if r.At != nil {
		m.At = *r.At
	}
	return m
}

// from has something done with what is to be dumped: the database itself, or a server beside with the database as it was.
func (x *Backups) from(
	ctx context.Context, c *diskroom.Claim, req Request, tell jobs.Tell, do func(source) error,
) error {
	if !req.apart() {
		return do(source{Server: x.Server, database: req.Database, logins: req.Logins})
	}
	used := func(context.Context) (int64, error) { return x.Past.Used(req.OperationID) }
	return c.Watch(ctx, diskroom.Beside, used, func(ctx context.Context) (err error) {
		side, asOf, err := x.recovered(ctx, req, tell)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, side.Close())
			c.Release(diskroom.Beside)
		}()
		return do(source{Server: side.Server, database: side.Database, logins: side.Logins, beside: true, asOf: asOf})
	})
}

// recovered has the database back, with its last moment where it is of a server that is gone.
func (x *Backups) recovered(ctx context.Context, req Request, tell jobs.Tell) (side *archive.Side, asOf *time.Time, err error) {
	ctx, cancel := jobs.Within(ctx, "to have the database back as it was", x.Limits.Dump)
	defer cancel()
	told := func(stage string, progress int, bytes command.Bytes) { tell(stage, progress*pastShare/100, bytes) }
	if req.Lost == "" {
		side, err = x.Past.Recover(ctx, req.moment(), told)
	} else {
		side, asOf, err = x.recoveredLost(ctx, req, told)
	}
	return side, asOf, jobs.InTime(ctx, err)
}

func (x *Backups) recoveredLost(ctx context.Context, req Request, tell jobs.Tell) (*archive.Side, *time.Time, error) {
	of, err := x.Lost(req.Lost)
	if err != nil {
		return nil, nil, err
	}
	side, asOf, err := x.Past.RecoverLost(ctx, of, req.moment(), tell)
	return side, &asOf, err
}

// roomBeside is the room for the server beside.
func (x *Backups) roomBeside(ctx context.Context, req Request, size int64) (n diskroom.Need, err error) {
	if x.Past == nil {
		return n, fault.New(fault.PointNotRecoverable, "the database's server keeps no archive")
	}
	room := func() (int64, error) { return x.Past.Room(ctx, req.moment(), size) }
	if req.Lost != "" {
		of, err := x.Lost(req.Lost)
		if err != nil {
			return n, err
		}
		room = func() (int64, error) { return x.Past.RoomLost(ctx, of, size) }
	}
	bytes, err := room()
	return diskroom.Need{Purpose: diskroom.Beside, Bytes: bytes}, err
}
