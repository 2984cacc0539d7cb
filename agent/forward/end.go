package forward

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// end implements command.EndForward.
func (x *Forwards) end(ctx context.Context, e protocol.Command, c command.EndForward) (none command.None, err error) {
	if err := x.endOf(ctx, c.DatabaseID); err != nil {
		return none, err
	}
	return ledger.Conclude(ctx, x.ledger, e, none, crash.EndForwardReply)
}

// endOf sends nobody on any more for a database. There need not be a forward.
func (x *Forwards) endOf(ctx context.Context, db id.DatabaseID) error {
	const shut = `UPDATE pooler.forwarded s SET verifier = NULL FROM pooler.forward w
		WHERE w.database = s.database AND w.database_id = $1`
	if _, err := x.db.ExecContext(ctx, shut, string(db)); err != nil {
		return err
	}
	crash.Point(crash.EndForwardShut)
	names, err := pg.Column(ctx, x.db, "SELECT database FROM pooler.forward WHERE database_id = $1", string(db))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.pooler.Evict(ctx, pooler.OfDatabase(name)); err != nil {
			return err
		}
	}
	crash.Point(crash.EndForwardEvicted)
	if _, err := x.db.ExecContext(ctx, "DELETE FROM pooler.forward WHERE database_id = $1", string(db)); err != nil {
		return err
	}
	crash.Point(crash.EndForwardGone)
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return err
	}
	for _, name := range names {
		x.close(name)
	}
	return nil
}

const (
	// settlePause is between two looks while there are forwards, and leastPause where one of them ends soon.
	settlePause = 15 * time.Second
	leastPause  = time.Second
	restPause   = time.Minute
	settleTime  = 30 * time.Second
)

// Run ends forwards at their time, and lines whose forward the ledger has no more, until ctx ends.
func (x *Forwards) Run(ctx context.Context) {
	loop.Run(ctx, x.log, x.wake, "forwards do not end, or do not begin", func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		pause, err := x.settle(ctx)
		if err != nil {
			pause = leastPause
		}
		return max(pause, leastPause), err
	})
}

// settle returns how long to wait until the next forward ends.
func (x *Forwards) settle(ctx context.Context) (pause time.Duration, err error) {
	all, closed, failed, err := x.openStored(ctx)
	if err != nil {
		return 0, err
	}
	if pause = settlePause; len(all) == 0 {
		pause = restPause
	}
	if err = failed; closed { // PgBouncer may have been told already
		err = errors.Join(err, x.pooler.Sync(ctx, x.ledger.PoolerState))
	}
	for _, s := range all {
		if s.left > 0 {
			pause = min(pause, s.left)
		} else {
			err = errors.Join(err, x.expire(ctx, s))
		}
	}
	return pause, err
}

// expire ends a forward whose time is over, unless it was given another one meanwhile.
func (x *Forwards) expire(ctx context.Context, s stored) error {
	release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(string(s.db)))
	if err != nil {
		return err
	}
	defer release()
	const query = "SELECT EXISTS (SELECT FROM pooler.forward WHERE database_id = $1 AND until <= clock_timestamp())"
	over, err := pg.One[bool](ctx, x.db, query, string(s.db))
	if err != nil || !over {
		return err
	}
	return x.endOf(ctx, s.db)
}
