package controlplane

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// keepRoles goes on with changes of logins that were left unfinished, and ends credentials whose validity is over. A server that
// does not answer costs one attempt.
func (k *Keeper) keepRoles(ctx context.Context) error {
	out := outage{}
	return errors.Join(k.resumeChanges(ctx, out), k.expireRoles(ctx, out))
}

func (k *Keeper) resumeChanges(ctx context.Context, out outage) error {
	return round(func(limit int) (list []role.Change, err error) {
		err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
			list, err = tx.RoleChanges().Due(ctx, k.Clock.Now(), limit)
			return err
		})
		return list, err
	}, func(c role.Change) bool {
		job, err := k.loadChange(ctx, c.DatabaseID, c.ID)
		if err != nil && !isSettled(err) {
			k.recordChange(ctx, "change.unreadable", c, err)
		}
		return err == nil && job.change.Open() && k.goOn(ctx, job, out)
	})
}

// goOn makes one attempt at a pending change, and reports whether it has ended.
func (k *Keeper) goOn(ctx context.Context, job changeJob, out outage) bool {
	if out.of(job.record.ServerID) {
		return false
	}
	waiting, cancel := context.WithTimeout(ctx, k.RoleWait)
	defer cancel()
	o, err := k.drive(waiting, job)
	if err != nil && !isSettled(err) {
		k.recordChange(ctx, "change.unconfirmed", job.change, err)
	}
	return out.note(job.record.ServerID, errors.Join(err, o.cause)) == nil
}

func (k *Keeper) expireRoles(ctx context.Context, out outage) error {
	return round(func(limit int) (list []role.Role, err error) {
		err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
			list, err = tx.Roles().Expiring(ctx, k.Clock.Now(), limit)
			return err
		})
		return list, err
	}, func(r role.Role) bool {
		job, err := k.beginExpiry(ctx, r)
		if err != nil {
			if !isSettled(err) {
				k.journal(ctx, "role.not_expired", r.DatabaseID, err)
			}
			return false
		}
		k.recordChange(ctx, "change.begun", job.change, nil)
		k.goOn(ctx, job, out)
		return true
	})
}

// beginExpiry commits the intent. From then on nobody reveals or rotates the password, whatever its server does.
func (k *Keeper) beginExpiry(ctx context.Context, r role.Role) (job changeJob, err error) {
	err = k.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := scene(ctx, tx, r.DatabaseID)
		if err != nil {
			return err
		}
		target, err := tx.Roles().Get(ctx, r.DatabaseID, r.ID)
		if err != nil {
			return err
		}
		cell, ok := s.AdmitsExpiry(target, k.Clock.Now())
		if !ok {
			return errSettled
		}
		w := wish{kind: role.Expiry, key: k.internalKey("expire"), actor: audit.System}
		job, err = k.changeRole(ctx, tx, s.Database, target, cell, w)
		return err
	})
	return job, err
}
