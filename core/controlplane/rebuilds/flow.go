package rebuilds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rebuild"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that make databases of a server that is gone anew.
const Kind operation.Kind = "rebuild"

func (r *Rebuilds) register() {
	work.RegisterStaged(r.base.Work, work.Staged[rebuild.Input]{
		Kind: work.Kind[rebuild.Input]{
			Spec:     operation.Spec{Kind: Kind, Public: true, Right: account.Own},
			Withdraw: r.withdraw,
			Calls: append(slices.Clone(provision.StandCalls), "dump", "adopt", "load", "switch",
				"discard", "prove", "admit", "access", "close"),
			Commits: []string{
				string(rebuild.Dumping), string(rebuild.Adopting), string(rebuild.Loading), string(rebuild.Switching),
				string(rebuild.Opening), string(rebuild.Settling), string(stage.Failing), "succeeded", "failed",
			},
		},
		Machine: rebuild.Machine, Begun: rebuild.Making,
		Begin: func(_ context.Context, t *work.Turn[rebuild.Input]) (work.Steps, error) { return turn{t, r}, nil },
	})
}

// turn is one step of a rebuild.
type turn struct {
	*work.Turn[rebuild.Input]
	r *Rebuilds
}

// Do implements work.Steps.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	switch s {
	case rebuild.Making:
		return t.make(ctx)
	case rebuild.Dumping:
		return t.dump(ctx)
	case rebuild.Adopting:
		return t.adopt(ctx)
	case rebuild.Loading:
		return t.load(ctx)
	case rebuild.Switching:
		return t.switchOver(ctx)
	case rebuild.Opening:
		return t.open(ctx)
	}
	return t.settle(ctx)
}

// make has the agent make the database, empty and closed, with all that keeps customers out of it or lets them in, and the roles,
// which cannot log in yet: what they own and are granted comes with the data.
func (t turn) make(ctx context.Context) (work.Next, error) {
	t.Progress(string(rebuild.Making), 0)
	all, err := t.r.roles(ctx, t.r.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	switch refused, err := provision.Stand(ctx, t.r.base, t.Lease, t.Agent, t.Record, all); {
	case err != nil:
		return work.Next{}, err
	case refused != nil:
		return t.Fail(ctx, refused)
	}
	for _, kind := range []command.Kind{command.SetAllowlist{}.About().Kind, command.Configure{}.About().Kind} {
		if err := t.r.base.Resend(ctx, t.Record.ID, kind); err != nil {
			return work.Next{}, err
		}
	}
	if t.Input.Archive {
		return t.Next(ctx, rebuild.Made)
	}
	return t.Next(ctx, rebuild.MadeBare)
}

func (t turn) tell(ctx context.Context, what string, c command.Returning[command.None]) error {
	_, err := work.Send(ctx, t.Lease, what, t.Agent, c)
	return err
}

// dump has the agent have the database back from the archive of the server that is gone.
func (t turn) dump(ctx context.Context) (work.Next, error) {
	report, err := work.Send(ctx, t.Lease, "dump", t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, Lost: t.Input.Lost, SizeBytes: t.Input.SizeBytes,
	})
	if base.RefusedForGood(err) {
		report, err = base.RefusedBackup(err), nil
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.BackupRunning:
		return t.Running(recovery.Shown(report.Stage, string(rebuild.Dumping)), min(report.Progress/2, almost), report.Bytes,
			report.Stage == operation.StageQueued)
	case report.State == command.BackupFailed && report.Reason == command.ReasonNotFound:
		t.Log("rebuild.not_archived", errors.New(report.Message))
		return t.Next(ctx, rebuild.Missing)
	case report.State == command.BackupFailed:
		return t.Fail(ctx, base.JobFailed(report.Reason, report.Message,
			"the server could not have the database back from the archive of the one that is gone",
			"the server has no room to have the database back"))
	}
	t.Input.ManifestSHA256 = report.ManifestSHA256
	if report.AsOf != nil {
		t.Input.AsOf = *report.AsOf
	}
	return t.Next(ctx, rebuild.Dumped)
}

// adopt has the agent take over the backup that the database is made from.
func (t turn) adopt(ctx context.Context) (work.Next, error) {
	list, err := provision.Backups(ctx, t.r.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	pick, some := rebuild.Pick(list)
	if !some {
		return t.Fail(ctx, fault.New(fault.BackupNotFound,
			"the archive of the server that is gone does not have the database, and there is no verified backup of it"))
	}
	found, err := t.take(ctx, pick)
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the server could not take over the backup %s", pick.Filename))
	case err != nil:
		return work.Next{}, err
	case found.State == command.ReadingDamaged:
		t.Input.Backup, t.Input.Damaged = pick.Filename, found.Why
		return t.Fail(ctx, fault.New(fault.BackupNotFound,
			"the backup %s cannot be taken over: %s; another try takes the one before", pick.Filename, found.Why))
	case found.State != command.ReadingWhole:
		return t.Running(string(rebuild.Adopting), 0, command.Bytes{}, false)
	}
	t.Input.Backup, t.Input.ManifestSHA256, t.Input.AsOf = pick.Filename, pick.ManifestSHA256, pick.CreatedAt
	return t.Next(ctx, rebuild.Adopted)
}

// take has the agent take a backup over from what the server that is gone has left.
func (t turn) take(ctx context.Context, b backup.Backup) (command.BackupReading, error) {
	return provision.Adopt(ctx, t.Lease, t.Agent, b, command.AdoptBackup{Lost: t.Input.Lost})
}

// load has the agent make the copy. What it does not find of roles it leaves out, and says so.
func (t turn) load(ctx context.Context) (work.Next, error) {
	source := command.Source{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, ManifestSHA256: t.Input.ManifestSHA256,
	}
	if t.Input.Backup != "" {
		source.Filename, source.Passing = t.Input.Backup, false
	}
	report, err := work.Send(ctx, t.Lease, "load", t.Agent, command.Load{DatabaseID: t.Record.ID, Compare: true, Source: source})
	if base.RefusedForGood(err) {
		report, err = command.LoadReport{State: command.LoadFailed, Reason: base.ReasonShown(err)}, nil
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed && report.Reason == command.ReasonInvalid:
		why := cmp.Or(report.Message, "the database did not become equal to what was kept of it")
		if t.Input.Backup != "" {
			t.Input.Damaged = why
			why += "; another try takes the backup before"
		}
		return t.Fail(ctx, fault.New(fault.BackupNotVerified, "%s", why))
	case report.State == command.LoadFailed:
		return t.Fail(ctx, base.JobFailed(report.Reason, report.Message, "the server could not fill the database",
			"the server has no room for the database"))
	case report.State == command.LoadReady:
		t.Input.Notes = report.Notes
		t.Progress(string(rebuild.Switching), almost)
		return t.Next(ctx, rebuild.Loaded)
	}
	return t.Running(restore.Shown(report.Stage), min(50+report.Progress/2, almost), report.Bytes, report.Stage == restore.Waiting)
}

// almost is the progress of a rebuild whose copy is whole.
const almost = 95

// switchOver has the agent put the copy in the place of the empty database, and let customers in, but for a stopped one: that is
// never open. The server hears first of what keeps customers out, such as a suspension.
func (t turn) switchOver(ctx context.Context) (work.Next, error) {
	if err := t.r.base.PushAll(ctx, t.Record.ID); err != nil {
		return work.Next{}, err
	}
	if err := t.Intend(ctx, rebuild.Switching); err != nil {
		return work.Next{}, err
	}
	passwords, err := provision.Passwords(ctx, t.r.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	whole := command.Switch{DatabaseID: t.Record.ID, Open: !t.stopped(), Passwords: passwords}
	switched, err := work.Send(ctx, t.Lease, "switch", t.Agent, whole)
	switch {
	case command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches, base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the server could not put the copy in its place"))
	case err != nil:
		return work.Next{}, err
	}
	err = t.Enter(ctx, rebuild.Switched, func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, t.Record.ID, func(r *database.Record) error {
			now := t.r.base.Clock.Now()
			r.SizeBytes, r.SizedAt = switched.SizeBytes, &now
			return nil
		})
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.Again(0), nil
}

// stopped reports whether the database is one that nobody gets into.
func (t turn) stopped() bool { return t.Record.Status == database.Stopped }

// open has given up what only the making needed, the owner's log-in proved, and the roles admitted. A refusal for good, or one
// each time, changes nothing about the database, which is whole: it is logged, and noted where a role does not get in.
func (t turn) open(ctx context.Context) (work.Next, error) {
	t.Progress(string(rebuild.Opening), almost)
	if err := provision.Prove(ctx, t.r.base, t.Lease, t.Agent, t.Record); err != nil {
		return work.Next{}, err
	}
	all, err := t.r.roles(ctx, t.r.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	for _, one := range all {
		if one.Admit == nil {
			continue
		}
		one.Admit.Stopped = t.stopped()
		err := t.tell(ctx, "admit", *one.Admit)
		if err != nil && !provision.Hopeless(t.Lease, err) {
			return work.Next{}, err
		}
		if err != nil {
			t.Log("rebuild.role_refused", err)
			t.note("the role %s cannot log in: rotate its password", one.Username)
		}
	}
	if t.stopped() {
		shut := command.SetAccess{DatabaseID: t.Record.ID, Disconnect: true, Generation: t.Record.AccessGeneration}
		if _, err := work.Send(ctx, t.Lease, "access", t.Agent, shut); err != nil {
			return work.Next{}, err
		}
	}
	err = t.Enter(ctx, rebuild.Opened, func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, t.Record.ID, func(r *database.Record) error {
			if r.Status != database.Error {
				return nil
			}
			cell, err := r.Status.Decide(database.FoundWhole)
			r.Status = cell.Next
			return err
		})
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.Again(0), nil
}

func (t turn) note(format string, args ...any) {
	t.Input.Notes = command.Noted(t.Input.Notes, fmt.Sprintf(format, args...))
}

// settle has the agent take over the other backups. What cannot be had of them is noted: the database is back without them.
func (t turn) settle(ctx context.Context) (work.Next, error) {
	list, err := provision.Backups(ctx, t.r.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	for _, b := range list {
		found, err := t.take(ctx, b)
		switch {
		case err != nil && t.Of.Attempts < restore.MostSwitches:
			return work.Next{}, err
		case err != nil:
			t.Log("rebuild.backup_missing", err)
			t.note("the backup %s was not taken over", b.Filename)
		case found.State == command.ReadingRunning:
			return t.Running(string(rebuild.Settling), almost, command.Bytes{}, false)
		case found.State == command.ReadingDamaged:
			t.note("the backup %s was not taken over: %s", b.Filename, found.Why)
		}
	}
	return t.Finish(ctx, t.Ending(operation.Succeed, nil))
}

// Lost implements work.Steps. Once the copy is the database, it has gone with this server, too, and is had back from what that
// has left.
func (t turn) Lost(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if t.Stage == rebuild.Opening || t.Stage == rebuild.Settling {
		return t.Finish(ctx, t.logged(operation.Fail, cause))
	}
	return t.Finish(ctx, t.Ending(operation.Fail, cause))
}

// Ending implements work.Steps. A database that is not made anew stays with the server that is gone.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	e := t.logged(on, cause)
	if on == operation.Succeed {
		return e
	}
	return e.After(func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(t.condemn(ctx, tx), t.r.withdraw(ctx, tx, t.Of))
	})
}

// condemn stores that the backup is damaged that the database could not be made from. Nobody else finds out: its server is gone.
func (t turn) condemn(ctx context.Context, tx ports.Tx) error {
	if t.Input.Damaged == "" {
		return nil
	}
	b, err := tx.Backups().Get(ctx, t.Record.ID, t.Input.Backup)
	if err != nil {
		return base.NotFound(err, nil) // deleted meanwhile
	}
	_, err = t.r.base.FoundDamaged(ctx, tx, t.Record, b, t.r.base.Clock.Now(), t.Input.Damaged)
	return err
}

func (t turn) logged(on operation.Event, cause *fault.Error) work.Ending {
	details := audit.Details{}
	if on == operation.Succeed {
		result := t.Input.Result()
		details["source"] = result.Source
		details["lostFrom"], details["lostTo"] = recovery.Text(result.LostFrom), recovery.Text(result.LostTo)
	}
	e := t.Logged(on, cause, audit.RebuildFinished, details)
	if on == operation.Succeed {
		e.Result = operation.Encode(t.Input.Result())
	}
	return e
}

// withdraw leaves a database with the server that is gone.
func (r *Rebuilds) withdraw(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	input, err := operation.Decode[rebuild.Input](o.Input)
	if err != nil {
		return err
	}
	return tx.Servers().Move(ctx, o.DatabaseID, input.From)
}
