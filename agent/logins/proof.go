package logins

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// proveChange shows, on the server and by log-ins, that what was set is in force and the old password is dead. The log-ins with
// the two passwords run side by side.
func (x *Logins) proveChange(ctx context.Context, l loginRow, c command.ChangeLogin, proof *role.Proof) error {
	if err := x.proveStored(ctx, l, c); err != nil {
		return err
	}
	var logIns errgroup.Group
	if c.Want == role.Rotation {
		logIns.Go(func() error { return x.proveNew(ctx, l, c, proof) })
	}
	if c.OldPassword != "" {
		logIns.Go(func() error {
			err := x.proveRefused(ctx, l, c.OldPassword)
			proof.OldRefused = err == nil
			return err
		})
	}
	return logIns.Wait()
}

// proveNew shows that the new password gets in, unless its validity has ended: a rotation may have been kept waiting for longer
// than that, and what nobody can log in with any more is no reason to keep it from being done. Nor is a database that nobody gets
// into: it is proven that the password is stored, and it works once the database is open.
func (x *Logins) proveNew(ctx context.Context, l loginRow, c command.ChangeLogin, proof *role.Proof) (err error) {
	if proof.Lapsed, err = x.lapsed(ctx, c.ValidUntil); err != nil || proof.Lapsed {
		return err
	}
	if proof.Closed = l.db.Shut; proof.Closed {
		return nil
	}
	connect, err := x.proveAccepted(ctx, l, c.NewPassword)
	if errors.Is(err, pooler.ErrRefused) {
		var late error
		if proof.Lapsed, late = x.lapsed(ctx, c.ValidUntil); late != nil || proof.Lapsed {
			return late // it ended in the middle of the proof
		}
	}
	proof.NewAccepted, proof.ConnectMissing = err == nil, err == nil && !connect
	return err
}

// lapsed reports whether the validity of a password has ended, by the clock that decides about log-ins.
func (x *Logins) lapsed(ctx context.Context, until *time.Time) (bool, error) {
	if until == nil {
		return false, nil
	}
	return pg.One[bool](ctx, x.db, "SELECT $1::timestamptz <= clock_timestamp()", *until)
}

// proveStored compares the role with what it shall be. Who got in meanwhile, by a log-in that stood still over the change, may
// have set a password of its own: then the command goes over all of it again.
func (x *Logins) proveStored(ctx context.Context, l loginRow, c command.ChangeLogin) error {
	if !l.exists {
		return nil
	}
	seen, err := x.observe(ctx, l, c.Verifier, "")
	if err != nil {
		return err
	}
	asItShall := map[role.Kind]bool{ //nolint:exhaustive // a removal proves nothing
		role.Rotation:   seen.MayLogIn == !l.db.Shut && seen.Password == role.OurPassword,
		role.Revocation: !seen.MayLogIn && seen.Password == role.NoPassword,
		role.Expiry:     !seen.MayLogIn,
	}[c.Want]
	if !asItShall {
		return command.Refuse(command.ReasonUnavailable, "somebody has changed the login meanwhile; send the command again")
	}
	return nil
}
