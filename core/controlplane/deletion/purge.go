package deletion

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

func (d *Deletion) registerPurge() {
	work.RegisterStaged(d.base.Work, work.Staged[work.None]{
		Kind: work.Kind[work.None]{
			Spec:     operation.Spec{Kind: deletion.KindPurge, Ends: true},
			Withdraw: purgesOn,
			Calls:    []string{"purge", "rejoin"},
			Commits:  []string{"refused", string(stage.Failing), string(deletion.Removing), "succeeded", "failed"},
		},
		Machine: deletion.Purge, Begun: deletion.Removing,
		Begin: func(_ context.Context, t *work.Turn[work.None]) (work.Steps, error) { return purging{t, d}, nil },
	})
	rounds.Register(d.base.Rounds, rounds.Task{Name: "purges", Every: base.RoundEvery, Do: d.beginPurges})
}

// purgesOn refuses to cancel a purge that nobody has begun: nothing else can be done to the database any more.
func purgesOn(context.Context, ports.Tx, operation.Operation) error {
	return fault.New(fault.DatabaseStateConflict, "a purge cannot be canceled")
}

// beginPurges queues the purges of the databases whose time is over. It asks no server: the queue is fair between accounts and
// servers, and a database that is being recovered comes when that has failed.
func (d *Deletion) beginPurges(ctx context.Context, now time.Time) error {
	list, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]deletion.Tombstone, error) {
		return tx.Deletions().Due(ctx, now, base.RoundBatch)
	})
	for _, t := range list {
		err = errors.Join(err, d.base.UnlessSettled(ctx, "purge.not_begun", t.DatabaseID, d.beginPurge(ctx, now, t)))
	}
	return err
}

// beginPurge is where a purge becomes possible no earlier than its time, and only while nothing else is done to the database.
func (d *Deletion) beginPurge(ctx context.Context, now time.Time, due deletion.Tombstone) error {
	err := d.base.UpdateDatabase(ctx, due.DatabaseID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		s, err := tx.Deletions().Get(ctx, locked.ID)
		if err != nil {
			return err
		}
		if !s.Tombstone.Due(now) || locked.Suspended() {
			return base.ErrSettled
		}
		switch _, err := tx.Operations().Open(ctx, locked.ID); {
		case err == nil:
			return base.ErrSettled
		case !errors.Is(err, ports.ErrNoRow):
			return err
		}
		_, err = d.queuePurge(ctx, tx, locked, audit.System, audit.Details{})
		return err
	})
	if err == nil {
		d.base.Work.Reserved(deletion.KindPurge)
	}
	return err
}

// purging is one step of a purge.
type purging struct {
	*work.Turn[work.None]
	d *Deletion
}

// Do implements work.Steps: the agent removes what it has of the database, its files with it. It refuses what is in service: then
// the metadata went back in time, or the server did. The record goes afterwards, which frees the name.
//
// Backups that stayed at servers which the database has left go last. Such a server may be gone: one that does not answer is
// waited for for a while only.
func (t purging) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	t.Stage = s
	t.Progress(string(s), 0)
	_, err := work.Send(ctx, t.Lease, "purge", t.Agent, command.Purge{DatabaseID: t.Record.ID})
	switch {
	case err == nil:
		if err := t.eraseKept(ctx); err != nil && t.Of.Attempts < restore.MostSwitches {
			return work.Next{}, err
		}
		return t.Finish(ctx, t.Ending(operation.Succeed, nil))
	case t.refused(err):
		err = errors.Join(err, t.noteRefusal(ctx, err))
	}
	return work.Next{}, err
}

// eraseKept removes the backups of the database that other servers keep, as far as these answer.
func (t purging) eraseKept(ctx context.Context) error {
	list, err := ports.Read(ctx, t.d.base.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Backup, error) {
		return tx.Backups().List(ctx, t.Record.ID, ports.Page{})
	})
	for _, b := range list {
		if b.KeptBy != "" {
			err = errors.Join(err, t.d.base.EraseBackup(ctx, b.KeptBy, t.Record.ID, b.Filename))
		}
	}
	if err != nil {
		t.Log("purge.backup_kept", err)
	}
	return err
}

// refused reports whether an operator has to mend something before the purge goes on: the agent refuses it for good, or somebody
// has been in its way for so long that nobody can be expected to leave.
func (t purging) refused(err error) bool {
	return base.RefusedForGood(err) || command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches
}

// noteRefusal records in the operation, once, why its server refuses the purge. It stays where it is and is tried again, until
// the cause is mended on the server, or an operator ends it; others do not wait for it.
func (t purging) noteRefusal(ctx context.Context, err error) error {
	t.Log("purge.refused", err)
	cause := fault.Wrap(err, fault.AgentError, "the database server refuses to purge the database: %s", base.WhyRefused(err))
	if command.RefusedFor(err, command.ReasonInService) {
		cause.Message += "; to keep it, end the purge as failed"
	}
	if now := t.Failure(); now != nil && now.Message == cause.Message {
		return nil
	}
	return t.Save(ctx, "refused", func(o *operation.Operation) { o.Enter(string(t.Stage), cause) }, nil)
}

// End implements work.Steps, on an operator's order: the agent puts the database into service, or says that it is, and it is what
// it was before its deletion. Where nothing of it stands any more, the purge goes on.
func (t purging) End(ctx context.Context, e work.Ending) (work.Next, error) {
	scene, err := ports.Read(ctx, t.d.base.Store, func(ctx context.Context, tx ports.Tx) (deletion.Scene, error) {
		return tx.Deletions().Get(ctx, t.Record.ID)
	})
	if err != nil {
		return work.Next{}, err
	}
	was := scene.Tombstone.StatusBefore
	_, err = work.Send(ctx, t.Lease, "rejoin", t.Agent, command.Rejoin{DatabaseID: t.Record.ID, Open: was == database.Active})
	switch {
	case command.RefusedFor(err, command.ReasonNotFound):
		_ = t.eraseKept(ctx) // it is noted
		return t.Next(ctx, stage.Completed)
	case err != nil:
		return work.Next{}, err
	}
	e.Also = func(ctx context.Context, tx ports.Tx) error {
		locked, err := tx.Databases().Lock(ctx, t.Record.ID)
		if err == nil {
			err = t.d.followed(ctx, tx, locked, Recovering)
		}
		if err == nil {
			err = t.d.revive(ctx, tx, locked, was)
		}
		if err != nil {
			return err
		}
		return t.d.base.Audit(ctx, tx, locked, audit.Operator, audit.DatabaseRecovered, audit.Details{
			"operationId": string(t.Of.ID), "status": string(was),
		})
	}
	return t.Finish(ctx, e)
}

// Ending implements work.Steps. Where it succeeds, the record is removed, with those of the backups.
func (t purging) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return work.Ending{On: on, Cause: cause, DatabaseName: t.Record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
		names, err := tx.Backups().Names(ctx, t.Record.ID)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.Backups().Remove(ctx, t.Record.ID, name); err != nil {
				return err
			}
		}
		if err := t.d.followed(ctx, tx, t.Record, Purged); err != nil {
			return err
		}
		if err := tx.Databases().Remove(ctx, t.Record.ID); err != nil {
			return err
		}
		return t.d.base.Audit(ctx, tx, t.Record, audit.System, audit.DatabasePurged, audit.Details{"name": t.Record.Name})
	}}
}

// Lost implements work.Steps: the database is forgotten with its backups and uploads. Should the server come back, the doctor
// finds what stands there. Backups that other servers keep are removed, as far as these answer.
func (t purging) Lost(ctx context.Context, _ *fault.Error) (work.Next, error) {
	_ = t.eraseKept(ctx) // it is noted
	return t.Finish(ctx, t.Ending(operation.Succeed, nil).After(func(ctx context.Context, tx ports.Tx) error {
		files, err := tx.Uploads().OfAccount(ctx, t.Record.AccountID)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.DatabaseID != t.Record.ID {
				continue
			}
			if err := tx.Uploads().Remove(ctx, f.ID); err != nil {
				return err
			}
		}
		return nil
	}))
}
