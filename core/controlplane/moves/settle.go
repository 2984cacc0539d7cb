package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// depart has the database dropped where it was. A server that does not do so is left alone after a while: it may be gone.
func (t *turn) depart(ctx context.Context) (work.Next, error) {
	t.Progress(string(move.Departing), almost)
	_, err := work.Send(ctx, t.Lease, "depart", t.from.agent, command.Depart{DatabaseID: t.Record.ID})
	switch {
	case t.lost(ctx, err), err != nil && t.Of.Attempts < move.MostTries:
		return work.Next{}, err
	case err != nil:
		t.Log("move.not_departed", err)
		t.note("the server %s still has the database, closed: it did not answer any more", t.from.Name)
	}
	return t.Next(ctx, move.Departed)
}

// sendsOn tells the server that is left whom to send on, as soon as the other one serves: before it drops the database, which
// waits for a checkpoint. A round does it where this goes wrong.
func (t *turn) sendsOn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, move.PartTime)
	defer cancel()
	all, err := ports.Read(ctx, t.m.base.Store, func(ctx context.Context, tx ports.Tx) ([]move.Forward, error) {
		return tx.Forwards().Of(ctx, t.Record.ID)
	})
	for _, f := range all {
		if f.ServerID == t.from.ID {
			err = errors.Join(err, t.m.look(ctx, f))
		}
	}
	if err != nil {
		t.Log("move.not_sent_on", err)
	}
}

func (t *turn) note(format string, args ...any) {
	t.Input.Notes = command.Noted(t.Input.Notes, fmt.Sprintf(format, args...))
}

// settle has the backups carried over. What cannot be is noted, and stays where it is: customers work meanwhile. One that does
// not come holds up none of the others, and all of them the end of the move for no longer than their time.
func (t *turn) settle(ctx context.Context) (work.Next, error) {
	t.Progress(string(move.Settling), almost)
	peer, err := t.peer()
	if err != nil {
		return work.Next{}, err
	}
	list, err := provision.Backups(ctx, t.m.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	late := !t.m.base.Clock.Now().Before(t.Input.SettledBy(t.Of.CreatedAt))
	carried, running, failed := map[backup.Filename]bool{}, false, error(nil)
	t.Input.Kept = nil
	for _, b := range list {
		found, err := provision.Adopt(ctx, t.Lease, t.to.agent, b, command.AdoptBackup{Peer: peer, Operation: t.Of.ID})
		switch {
		case t.lost(ctx, err):
			return work.Next{}, err
		case err != nil:
			failed = err
			t.keep(b.Filename, "it could not be fetched")
		case found.State == command.ReadingRunning:
			running = true
			t.keep(b.Filename, "it could not be fetched in time")
		case found.State == command.ReadingDamaged:
			t.keep(b.Filename, found.Why)
		default:
			carried[b.Filename] = true
		}
	}
	switch {
	case running && !late:
		return t.Running(string(move.Settling), almost, command.Bytes{}, false)
	case failed != nil && !late && t.Of.Attempts < move.MostTries:
		return work.Next{}, failed
	}
	if failed != nil {
		t.Log("move.backup_kept", failed)
	}
	if err := t.rest(ctx, carried); err != nil && !late && t.Of.Attempts < move.MostTries {
		return work.Next{}, err
	}
	return t.Next(ctx, move.Settled)
}

// rest notes whatever else the server that is left has of the database's backups: what no record names, as after metadata went
// back, was not carried over, and is not to be removed either.
func (t *turn) rest(ctx context.Context, carried map[backup.Filename]bool) error {
	names, err := base.BackupsAt(ctx, t.from.agent, t.Record.ID)
	for _, name := range names {
		if !carried[name] && !slices.Contains(t.Input.Kept, name) {
			t.keep(name, "no record names it, or there are too many")
		}
	}
	return err
}

// leave has the server that was left remove what it has kept for the carrying over.
func (t *turn) leave(ctx context.Context) (work.Next, error) {
	_, err := work.Send(ctx, t.Lease, "leave", t.from.agent, command.Leave{DatabaseID: t.Record.ID, Kept: t.Input.Kept})
	switch {
	case t.lost(ctx, err), err != nil && t.Of.Attempts < move.MostTries:
		return work.Next{}, err
	case err != nil:
		t.Log("move.not_left", err)
		t.note("the server %s may still have files of the backups", t.from.Name)
	}
	return t.Finish(ctx, t.Ending(operation.Succeed, nil))
}

// keep notes that a backup stays at the server that is left.
func (t *turn) keep(name backup.Filename, why string) {
	t.Input.Kept = append(t.Input.Kept, name)
	t.note("the backup %s stays at the server %s: %s", name, t.from.Name, why)
}

// End implements work.Steps: both agents take back what was begun. The one that the database was to come to is asked first: where
// it has completed the move after all, as metadata that went back do not know, the database is its own. It is open again where it
// was even if the other one does not answer: nothing there serves before the pivot.
func (t *turn) End(ctx context.Context, e work.Ending) (work.Next, error) {
	notThere := t.close(ctx, "close_target", t.to.agent)
	switch fresh := t.Untouched(notThere); {
	case command.RefusedFor(notThere, command.ReasonCompleted):
		return t.Concluded(ctx)
	case t.lost(ctx, notThere):
		return work.Next{}, notThere
	case fresh:
		notThere = nil
	case notThere != nil:
		if err := t.m.base.InStep(ctx, t.from.ID); err != nil { // nobody knows what has become of the move since
			return work.Next{}, errors.Join(notThere, err)
		}
	}
	if err := t.close(ctx, "close", t.from.agent); err != nil && !t.Untouched(err) {
		return work.Next{}, errors.Join(notThere, err)
	}
	if notThere != nil && !t.Ordered {
		return work.Next{}, notThere
	}
	return t.Finish(ctx, e)
}

func (t *turn) close(ctx context.Context, what string, a ports.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, move.PartTime)
	defer cancel()
	return t.Call(ctx, what, func(ctx context.Context, f ports.Fence) error { return ports.Close(ctx, a, f) })
}

// kept stores which backups stay at the server that is left: they cannot be used from here. What was kept here before is the
// database's again.
func (t *turn) kept(ctx context.Context, tx ports.Tx) error {
	all, err := tx.Backups().List(ctx, t.Record.ID, ports.Page{})
	if err != nil {
		return err
	}
	for _, b := range all {
		switch stays := slices.Contains(t.Input.Kept, b.Filename); {
		case stays && b.KeptBy == "":
			b.KeptBy = t.from.ID
			_, err = t.m.base.FoundDamaged(ctx, tx, t.Record, b, t.m.base.Clock.Now(), "it stays at the server "+t.from.Name)
		case !stays && b.KeptBy != "":
			b.KeptBy = ""
			err = tx.Backups().Save(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
