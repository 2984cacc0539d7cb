package adoptions

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// dropLeft has a server give up what it still has of a database that is another one's by its record, and serves there: it was
// away when the database left it, or was taken for gone. Customers are kept out of it first. What it holds is lost, but for
// backups that the other server does not have.
//
// DATABASE_STATE_CONFLICT: the other server does not have it in service, it is another database, work on it is open, or one of
// the servers has heard of what the metadata lack. AGENT_ERROR: one of the agents does not answer, or does not do it: asked
// again, it goes on.
func (a *Adoptions) dropLeft(
	ctx context.Context, q Asked, of database.Record, on server.Server, has command.InventoryDatabase,
) (Adopted, error) {
	at, err := a.serving(ctx, of)
	if err == nil {
		err = a.ownKey(ctx, of, has)
	}
	for _, s := range []id.ServerID{on.ID, of.ServerID} {
		if err == nil {
			err = inStep(a.base.InStep(ctx, s))
		}
	}
	if err != nil {
		return Adopted{}, err
	}
	err = a.base.UpdateStored(ctx, of.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := base.Idle(ctx, tx, locked.ID); err != nil {
			return err
		}
		if locked.ServerID != at.ID {
			return fault.New(fault.DatabaseStateConflict, "its record has just been changed")
		}
		return a.base.Audit(ctx, tx, locked, audit.Operator, audit.AdoptRequested, audit.Details{
			"name": locked.Name, "server": on.Name, "operator": q.Order.By, "reason": q.Order.Reason, "fate": string(adoption.Left),
		})
	})
	if err != nil {
		return Adopted{}, err
	}
	end := ending{db: of.ID, fence: ports.Fence{OperationID: base.NewID[id.OperationID](a.base.Entropy)}}
	ctx, cancel := context.WithTimeout(ctx, base.AskTime)
	defer cancel()
	if end.on, err = a.base.AgentOf(ctx, on.ID); err == nil {
		err = end.giveUp(ctx)
	}
	if err != nil {
		return Adopted{}, fault.Wrap(err, fault.AgentError, "the agent of %s has not given it up: %s", on.Name, base.WhyRefused(err))
	}
	notes := []string{on.Name + " has it no more; it is the database of " + at.Name}
	if err := a.removeBackups(ctx, end, at.ID); err != nil {
		notes = append(notes, on.Name+" may still have files of its backups: "+base.WhyRefused(err))
	}
	return Adopted{Record: of, Fate: adoption.Left, Notes: notes}, nil
}

// inStep makes a refusal of what says that the metadata are behind.
func inStep(err error) error {
	if err != nil && !fault.Has(err, fault.AgentError) {
		err = fault.Wrap(err, fault.DatabaseStateConflict, "%s", err)
	}
	return err
}

// serving is the server of a record, which has the database in service.
func (a *Adoptions) serving(ctx context.Context, of database.Record) (server.Server, error) {
	at, agent, err := a.base.ServerOf(ctx, of.ServerID)
	if err != nil {
		return at, err
	}
	has, err := base.InventoryOf(ctx, agent, of.ID)
	open, serves := doctor.Open(of.Status)
	switch {
	case err != nil:
		err = fault.Wrap(err, fault.AgentError, "the agent of %s, which the record names, does not say whether it has it: %s; where "+
			"that server is gone for good, adopt --server-gone takes what is here", at.Name, err)
	case has == nil:
		err = fault.New(fault.DatabaseStateConflict, "%s, which the record names, does not have it: adopt it", at.Name)
	case !serves || !has.Made || has.Isolated != "" || has.Open != open:
		err = fault.New(fault.DatabaseStateConflict, "%s, which the record names, does not have it in service: it is %s", at.Name,
			of.Status)
	}
	return at, err
}

// ending is what the agent of a server is told by which it gives up a database. The operation has no record, as that of every
// command by which a difference is mended.
type ending struct {
	db    id.DatabaseID
	on    ports.Agent
	fence ports.Fence
}

// giveUp has the server shut customers out of the database, and drop it.
func (e ending) giveUp(ctx context.Context) error {
	_, err := ports.Do(ctx, e.on, e.fence, command.Part{DatabaseID: e.db, Closed: true})
	if err == nil {
		_, err = ports.Do(ctx, e.on, e.fence, command.Depart{DatabaseID: e.db})
	}
	return err
}

// removeBackups has the server remove the backups that another one has, too.
func (a *Adoptions) removeBackups(ctx context.Context, e ending, at id.ServerID) error {
	there, err := a.base.AgentOf(ctx, at)
	if err != nil {
		return err
	}
	has, err := base.BackupsAt(ctx, there, e.db)
	if err != nil {
		return err
	}
	kept, err := base.BackupsAt(ctx, e.on, e.db)
	if err != nil {
		return err
	}
	kept = slices.DeleteFunc(kept, func(f backup.Filename) bool { return slices.Contains(has, f) })
	_, err = ports.Do(ctx, e.on, e.fence, command.Leave{DatabaseID: e.db, Kept: kept})
	return err
}
