package roles

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func (d *driver) registerRounds() {
	rounds.Register(d.base.Rounds, rounds.Task{Name: "expired passwords", Every: base.RoundEvery, Do: d.expireRoles})
}

// expireRoles begins to shut out the roles whose password is no longer valid, for workers to go on with. A database has one
// pending change at a time: when one of its roles is shut out, the next one follows.
func (d *driver) expireRoles(ctx context.Context, now time.Time) error {
	over, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().Expiring(ctx, now, d.base.Work.BesideLogins(), base.RoundMost)
	})
	for _, ended := range over {
		err = errors.Join(err, d.expire(ctx, now, ended))
	}
	return err
}

// expireNext begins to shut out another role of a database, if one is to be.
func (d *driver) expireNext(ctx context.Context, db id.DatabaseID) {
	now, err := d.base.Brake.Now(ctx, brake.Destroys)
	if err != nil {
		return // a round tries again
	}
	list, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, db)
	})
	for _, next := range list {
		if next.Status == role.Ready && next.CredentialExpired(now) {
			err = d.expire(ctx, now, next)
			break
		}
	}
	if err != nil { // a round tries again
		d.base.Log(ctx, "role.not_expired", db, err)
	}
}

// expire commits the intent to shut out a role, unless something else has to end first. From then on nobody reveals or rotates
// the password, whatever its server does.
func (d *driver) expire(ctx context.Context, now time.Time, ended role.Role) error {
	err := d.updateScene(ctx, ended.DatabaseID, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		target, err := tx.Roles().Get(ctx, ended.DatabaseID, ended.ID)
		if err != nil {
			return err
		}
		cell, ok := s.AdmitsExpiry(target, now)
		if !ok {
			return base.ErrSettled
		}
		want := intent{left: true}
		want.Kind, want.Key, want.Actor = role.Expiry, d.internalKey("expire"), audit.System
		_, err = d.changeRole(ctx, tx, s.Database, target, cell, want)
		return err
	})
	if err == nil {
		d.base.Work.Reserved(operation.Kind(role.Expiry))
	}
	return d.base.UnlessSettled(ctx, "role.not_expired", ended.DatabaseID, err)
}
