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
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// rehome makes a database the server's that has it, of which the record names another one: it has moved since the moment that the
// metadata went back to. Nothing changes at a server, so it need not be taken back; what the record has of settings is sent.
//
// DATABASE_STATE_CONFLICT: the other server has it, too, and nobody but a person can say which of the two counts; or work on it
// is open, or it is to be dropped. AGENT_ERROR: one of the agents does not answer.
func (a *Adoptions) rehome(
	ctx context.Context, q Asked, of database.Record, to server.Server, has command.InventoryDatabase,
) (Adopted, error) {
	if q.Drop {
		return Adopted{}, fault.New(fault.DatabaseStateConflict, "it has a record: %s is %s; adopt it, and delete it then", of.Name,
			of.Status)
	}
	from, agent, err := a.base.ServerOf(ctx, of.ServerID)
	if err != nil {
		return Adopted{}, err
	}
	there, err := base.Inventory(ctx, agent)
	if err != nil {
		return Adopted{}, fault.Wrap(err, fault.AgentError,
			"the agent of %s, which the record names, does not say whether it has it, too: %s", from.Name, err)
	}
	if _, err := adoption.Pick(there, string(of.ID)); err == nil {
		return Adopted{}, fault.New(fault.DatabaseStateConflict,
			"%s, which the record names, has it, too: compare both before either is removed", from.Name)
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
		return a.base.Audit(ctx, tx, locked, audit.Operator, audit.DatabaseAdopted, audit.Details{
			"name": locked.Name, "from": from.Name, "to": to.Name, "operator": q.Order.By, "reason": q.Order.Reason,
			"fate": string(adoption.Serves),
		})
	})
	if err != nil {
		return Adopted{}, err
	}
	if err := a.base.PushAll(ctx, of.ID); err != nil { // a round does it again
		a.base.Log(ctx, "adoption.pending", of.ID, err)
	}
	return Adopted{Record: of, Fate: adoption.Serves, Notes: []string{
		"it is the database of " + to.Name + " again, with the record that it has; its connection strings name " + to.PublicHost,
		"backups that did not come along with it are missing: pgherd admin backup forget --database " + string(of.ID),
	}}, nil
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
