package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func (r *Roles) registerRounds() {
	rounds.RegisterServers(r.base.Rounds, rounds.ServerTask[ports.DueChange]{
		Name: "changes of logins", Every: base.RoundEvery, Find: r.dueChanges, Do: r.goOn,
		Of:  func(c ports.DueChange) (id.ServerID, id.AccountID) { return c.ServerID, c.AccountID },
		Key: func(c ports.DueChange) string { return string(c.ID) },
	})
}

// dueChanges begins to shut out the roles whose password is no longer valid, and lists what is unfinished.
func (r *Roles) dueChanges(ctx context.Context) ([]ports.DueChange, error) {
	expired, err := r.expireRoles(ctx)
	due, dueErr := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.DueChange, error) {
		return tx.RoleChanges().Due(ctx, r.base.Clock.Now(), base.RoundMost)
	})
	return append(expired, due...), errors.Join(err, dueErr)
}

// goOn makes one attempt at a pending change. When one expired role of a database is shut out, the next one follows: a database
// has one pending change at a time.
func (r *Roles) goOn(ctx context.Context, c ports.DueChange) error {
	for more := true; more && ctx.Err() == nil; {
		job, ok := r.stillPending(ctx, c)
		if !ok {
			return nil
		}
		if err := r.attempt(ctx, job); err != nil { // it logs its error
			return err
		}
		c, more = r.nextExpiry(ctx, job)
	}
	return nil
}

// stillPending reads a change just before it is continued; false if there is nothing left to do.
func (r *Roles) stillPending(ctx context.Context, due ports.DueChange) (changeJob, bool) {
	c := role.Change{ID: due.ID, DatabaseID: due.DatabaseID}
	job, err := r.loadChange(ctx, c)
	if err != nil && !base.IsSettled(err) {
		r.logChange(ctx, "change.unreadable", c, err)
	}
	return job, err == nil && job.change.Open()
}

func (r *Roles) nextExpiry(ctx context.Context, done changeJob) (ports.DueChange, bool) {
	if done.change.Kind != role.Expiry {
		return ports.DueChange{}, false
	}
	list, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, done.record.ID)
	})
	for _, next := range list {
		if next.Status == role.Ready && next.CredentialExpired(r.base.Clock.Now()) {
			return r.expire(ctx, next)
		}
	}
	if err != nil {
		r.base.Log(ctx, "role.not_expired", done.record.ID, err)
	}
	return ports.DueChange{}, false
}

func (r *Roles) attempt(ctx context.Context, job changeJob) error {
	ctx, cancel := context.WithTimeout(ctx, r.base.RoleWait)
	defer cancel()
	o, err := r.drive(ctx, job)
	if err != nil && !base.IsSettled(err) {
		r.logChange(ctx, "change.unconfirmed", job.change, err)
	}
	return errors.Join(err, o.cause)
}

// expireRoles begins to shut out the roles whose password is no longer valid.
func (r *Roles) expireRoles(ctx context.Context) (begun []ports.DueChange, err error) {
	over, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().Expiring(ctx, r.base.Clock.Now(), r.base.Work.BesideLogins(), base.RoundMost)
	})
	for _, ended := range over {
		if c, ok := r.expire(ctx, ended); ok {
			begun = append(begun, c)
		}
	}
	return begun, err
}

// expire begins to shut out a role; false if something else has to end first.
func (r *Roles) expire(ctx context.Context, ended role.Role) (ports.DueChange, bool) {
	job, err := r.beginExpiry(ctx, ended)
	switch {
	case err == nil:
		r.logChange(ctx, "change.begun", job.change, nil)
	case !base.IsSettled(err):
		r.base.Log(ctx, "role.not_expired", ended.DatabaseID, err)
	}
	return ports.DueChange{
		ID: job.change.ID, DatabaseID: job.record.ID, ServerID: job.record.ServerID, AccountID: job.record.AccountID,
	}, err == nil
}

// beginExpiry commits the intent. From then on nobody reveals or rotates the password, whatever its server does.
func (r *Roles) beginExpiry(ctx context.Context, ended role.Role) (job changeJob, err error) {
	err = r.updateScene(ctx, ended.DatabaseID, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		target, err := tx.Roles().Get(ctx, ended.DatabaseID, ended.ID)
		if err != nil {
			return err
		}
		cell, ok := s.AdmitsExpiry(target, r.base.Clock.Now())
		if !ok {
			return base.ErrSettled
		}
		want := role.Change{Kind: role.Expiry, Key: r.internalKey("expire"), Actor: audit.System}
		job, err = r.changeRole(ctx, tx, s.Database, target, cell, intent{Change: want})
		return err
	})
	return job, err
}
