package adoptions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// rehome makes a database the server's that has it, of which the record names another one: it has moved since the moment that the
// metadata went back to. Nothing changes at a server, so it need not be taken back; what the record has of settings is sent.
//
// DATABASE_STATE_CONFLICT: the other server has it, too, so that one of the two is to be dropped; or work on it is open.
// AGENT_ERROR: one of the agents does not answer. VALIDATION_ERROR on "serverGone": the other server is not gone.
func (a *Adoptions) rehome(
	ctx context.Context, q Asked, of database.Record, to server.Server, has command.InventoryDatabase,
) (Adopted, error) {
	from, err := a.lacking(ctx, q, of)
	if err != nil {
		return Adopted{}, err
	}
	if err := a.ownKey(ctx, of, has); err != nil {
		return Adopted{}, err
	}
	err = a.base.UpdateStored(ctx, of.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := base.Idle(ctx, tx, locked.ID); err != nil {
			return err
		}
		if locked.ServerID != from.ID {
			return fault.New(fault.DatabaseStateConflict, "its record has just been changed")
		}
		if err := tx.Servers().Move(ctx, locked.ID, to.ID); err != nil {
			return err
		}
		err := base.Change(ctx, tx, locked.ID, func(r *database.Record) error {
			r.AccessGeneration++
			move.Become(r, to.PostgresVersion)
			a.base.Arrived(r, nil)
			of = *r
			return nil
		})
		if err != nil {
			return err
		}
		details := audit.Details{
			"name": locked.Name, "from": from.Name, "to": to.Name, "operator": q.Order.By, "reason": q.Order.Reason,
			"fate": string(adoption.Serves),
		}
		if q.Order.ServerGone {
			details["serverGone"] = "true"
		}
		return a.base.Audit(ctx, tx, locked, audit.Operator, audit.DatabaseAdopted, details)
	})
	if err != nil {
		return Adopted{}, err
	}
	if err := a.base.PushAll(ctx, of.ID); err != nil { // a round does it again
		a.base.Log(ctx, "adoption.pending", of.ID, err)
	}
	notes := []string{
		"it is the database of " + to.Name + " again, with the record that it has; its connection strings name " + to.PublicHost,
		"backups that did not come along with it are missing: pgherd admin backup forget --database " + string(of.ID),
	}
	if open, serves := doctor.Open(of.Status); serves && open != has.Open {
		notes = append(notes, "the record says that it is "+string(of.Status)+", and its server has it otherwise: "+
			"pgherd admin doctor --repair")
	}
	return Adopted{Record: of, Fate: adoption.Serves, Notes: notes}, nil
}

// lacking is the server that a record names, once it is sure that it does not have the database: it says so, or is gone for good.
func (a *Adoptions) lacking(ctx context.Context, q Asked, of database.Record) (server.Server, error) {
	from, agent, err := a.base.ServerOf(ctx, of.ServerID)
	if from.ID != "" && q.Order.ServerGone {
		return from, a.base.CheckGone(ctx, from.ID)
	}
	if err != nil {
		return from, err
	}
	has, err := base.InventoryOf(ctx, agent, of.ID)
	switch {
	case err != nil:
		return from, fault.Wrap(err, fault.AgentError,
			"the agent of %s, which the record names, does not say whether it has it, too: %s%s", from.Name, err, base.OrGone)
	case has != nil:
		return from, fault.New(fault.DatabaseStateConflict, "%s, which the record names, has it, too: compare both; "+
			"drop-unknown ends what %s has", from.Name, q.Server)
	}
	return from, nil
}

// ownKey demands that a server encrypts the backups of a database with the key of its record: then it is the same one.
func (a *Adoptions) ownKey(ctx context.Context, of database.Record, has command.InventoryDatabase) error {
	key, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) ([]byte, error) {
		stored, err := tx.BackupKeys().Get(ctx, of.ID)
		if err != nil {
			return nil, err
		}
		return a.base.Secrets.Open(stored.Sealed, stored.SecretContext())
	})
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(key); hex.EncodeToString(sum[:]) != has.BackupKeyMark {
		return fault.New(fault.DatabaseStateConflict, "it has not the key of the record's database: it is another one")
	}
	return nil
}
