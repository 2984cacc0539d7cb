package controlplane

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// keepRoles shuts out roles whose password is no longer valid, and continues unfinished changes of logins. The work of each
// server runs on its own, and later rounds do not wait for it: a change takes as long as the log-ins and sessions that it ends,
// and a hanging server must not delay the others.
func (k *Keeper) keepRoles(ctx context.Context, start func(work func())) error {
	expired, err := k.expireRoles(ctx)
	due, dueErr := k.dueChanges(ctx)
	for server, changes := range byServer(append(expired, due...), func(c ports.DueChange) id.ServerID { return c.ServerID }) {
		k.changing.work(server, start, func() { k.goOn(ctx, changes) })
	}
	return errors.Join(err, dueErr)
}

func (k *Keeper) dueChanges(ctx context.Context) (due []ports.DueChange, err error) {
	err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		due, err = tx.RoleChanges().Due(ctx, k.Clock.Now(), keepMost)
		return err
	})
	return due, err
}

// goOn makes one attempt at each of the pending changes of a server, until the server does not answer. When one expired role of
// a database is shut out, the next one follows: a database has one pending change at a time.
func (k *Keeper) goOn(ctx context.Context, changes []ports.DueChange) {
	for len(changes) > 0 && ctx.Err() == nil {
		c := changes[0]
		changes = changes[1:]
		job, ok := k.stillPending(ctx, c)
		if !ok {
			continue
		}
		switch err := k.attempt(ctx, job); { // it records its error
		case noAnswer(err):
			return
		case err != nil:
			continue
		}
		if next, ok := k.nextExpiry(ctx, job); ok {
			changes = append(changes, next)
		}
	}
}

// stillPending reads a change just before it is continued; false if there is nothing left to do.
func (k *Keeper) stillPending(ctx context.Context, due ports.DueChange) (changeJob, bool) {
	job, err := k.loadChange(ctx, due.DatabaseID, due.ID)
	if err != nil && !isSettled(err) {
		k.recordChange(ctx, "change.unreadable", role.Change{ID: due.ID, DatabaseID: due.DatabaseID}, err)
	}
	return job, err == nil && job.change.Open()
}

func (k *Keeper) nextExpiry(ctx context.Context, done changeJob) (ports.DueChange, bool) {
	if done.change.Kind != role.Expiry {
		return ports.DueChange{}, false
	}
	var list []role.Role
	err := k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Roles().List(ctx, done.record.ID)
		return err
	})
	for _, r := range list {
		if r.Status == role.Ready && r.ValidityEnded(k.Clock.Now()) {
			return k.expire(ctx, r)
		}
	}
	if err != nil {
		k.journal(ctx, "role.not_expired", done.record.ID, err)
	}
	return ports.DueChange{}, false
}

func (k *Keeper) attempt(ctx context.Context, job changeJob) error {
	ctx, cancel := context.WithTimeout(ctx, k.RoleWait)
	defer cancel()
	o, err := k.drive(ctx, job)
	if err != nil && !isSettled(err) {
		k.recordChange(ctx, "change.unconfirmed", job.change, err)
	}
	return errors.Join(err, o.cause)
}

// expireRoles begins to shut out the roles whose password is no longer valid.
func (k *Keeper) expireRoles(ctx context.Context) (begun []ports.DueChange, err error) {
	var over []role.Role
	err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		over, err = tx.Roles().Expiring(ctx, k.Clock.Now(), k.worker.BesideLogins(), keepMost)
		return err
	})
	for _, r := range over {
		if c, ok := k.expire(ctx, r); ok {
			begun = append(begun, c)
		}
	}
	return begun, err
}

// expire begins to shut out a role; false if something else has to end first.
func (k *Keeper) expire(ctx context.Context, r role.Role) (ports.DueChange, bool) {
	job, err := k.beginExpiry(ctx, r)
	switch {
	case err == nil:
		k.recordChange(ctx, "change.begun", job.change, nil)
	case !isSettled(err):
		k.journal(ctx, "role.not_expired", r.DatabaseID, err)
	}
	return ports.DueChange{ID: job.change.ID, DatabaseID: job.record.ID, ServerID: job.record.ServerID}, err == nil
}

// beginExpiry commits the intent. From then on nobody reveals or rotates the password, whatever its server does.
func (k *Keeper) beginExpiry(ctx context.Context, r role.Role) (job changeJob, err error) {
	err = k.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := k.scene(ctx, tx, r.DatabaseID)
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
