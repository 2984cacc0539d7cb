package executor

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/role"
)

// proveChange shows, on the server and by log-ins, that what was set is in force and the old password is dead. The log-ins with
// the two passwords run side by side.
func (x *Executor) proveChange(ctx context.Context, l loginRow, o loginOrder, proof *protocol.LoginProof) error {
	if err := x.proveStored(ctx, l, o); err != nil {
		return err
	}
	var logIns errgroup.Group
	if o.Want == protocol.LoginRotate {
		logIns.Go(func() error { return x.proveNew(ctx, l, o, proof) })
	}
	if o.old != "" {
		logIns.Go(func() error {
			err := x.proveRefused(ctx, l, o.old)
			proof.OldRefused = err == nil
			return err
		})
	}
	return logIns.Wait()
}

// proveNew shows that the new password gets in, unless its validity has ended: a rotation may have been kept waiting for longer
// than that, and what nobody can log in with any more is no reason to keep it from being done.
func (x *Executor) proveNew(ctx context.Context, l loginRow, o loginOrder, proof *protocol.LoginProof) (err error) {
	if proof.Lapsed, err = x.lapsed(ctx, o); err != nil || proof.Lapsed {
		return err
	}
	connect, err := x.proveAccepted(ctx, l, o.fresh)
	if errors.Is(err, pooler.ErrRefused) {
		var late error
		if proof.Lapsed, late = x.lapsed(ctx, o); late != nil || proof.Lapsed {
			return late // it ended in the middle of the proof
		}
	}
	proof.NewAccepted, proof.ConnectMissing = err == nil, err == nil && !connect
	return err
}

// lapsed reports whether the validity of an order's password has ended, by the clock that decides about log-ins.
func (x *Executor) lapsed(ctx context.Context, o loginOrder) (is bool, err error) {
	const query = "SELECT $1::timestamptz <= clock_timestamp()"
	if o.ValidUntil == nil {
		return false, nil
	}
	return is, x.db.QueryRowContext(ctx, query, *o.ValidUntil).Scan(&is)
}

// proveStored compares the role with what it shall be. Who got in meanwhile, by a log-in that stood still over the change, may
// have set a password of its own: then the command goes over all of it again.
func (x *Executor) proveStored(ctx context.Context, l loginRow, o loginOrder) error {
	if !l.standing {
		return nil
	}
	seen, err := x.observe(ctx, l, o.Verifier, "")
	if err != nil {
		return err
	}
	asItShall := map[string]bool{
		protocol.LoginRotate: seen.MayLogIn && seen.Password == role.OurPassword,
		protocol.LoginRevoke: !seen.MayLogIn && seen.Password == role.NoPassword,
		protocol.LoginExpire: !seen.MayLogIn,
	}[o.Want]
	if !asItShall {
		return refuse(protocol.ReasonUnavailable, "somebody has changed the login meanwhile; send the command again")
	}
	return nil
}
