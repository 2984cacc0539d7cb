// Package adoptions makes records of what servers have and the metadata do not know, as after the metadata went back in time:
// databases, and the files of backups.
package adoptions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Adoptions makes records. It does not authenticate: it is for the people who run the service.
type Adoptions struct {
	base     *base.Base
	deletion Deletion
	removes  RemoveRole
}

// Deletion deletes the databases that are not to stay.
type Deletion interface {
	// BeginOrdered queues the deletion of a database in a transaction that has locked it; Begun is called after the commit.
	BeginOrdered(ctx context.Context, tx ports.Tx, locked database.Record, o deletion.Ordered) (operation.Operation, error)
	Begun()
}

// New makes the use cases, and registers their kind.
func New(p *base.Base, d Deletion, r RemoveRole) *Adoptions {
	a := &Adoptions{base: p, deletion: d, removes: r}
	a.register()
	return a
}

// Asked asks for a database that a server has to be adopted, or dropped.
type Asked struct {
	Server id.ServerID
	// Database is its ID, or its name on the server.
	Database string
	// Account is whose it becomes; empty: the one that the agent knows.
	Account id.AccountID
	adoption.Wanted
	Order operation.Order
}

// Adopted is a database whose adoption is queued, or was before.
type Adopted struct {
	Record    database.Record
	Operation operation.Operation
	Fate      adoption.Fate
	Notes     []string // what cannot come back, and what is to be done
}

// Adopt queues that a database which a server has gets a record; with Drop, that it is then deleted as any other: with a verified
// backup, or with Bare without one, and recoverable until its purge. One that its server has out of service becomes a deleted
// one. Asked again, it returns what was queued.
//
// One that has a record, and has moved to the server since the moment that the metadata went back to, is its own again: see
// rehome; the order may say that the server which the record names is gone for good. With Drop, the server gives up what it has
// of a database that has left it: see dropLeft. Nothing is queued for that.
//
// VALIDATION_ERROR on "reason"; on "database": the agent has none of that name; on "account": there is none, or the agent knows
// another one for it; on "name": another record on the server has it; on "serverGone": it is not, or nothing is asked of another
// server. DATABASE_STATE_CONFLICT: it has a record, or not the marks of this service, or is not whole. AGENT_ERROR: the agent
// does not answer.
func (a *Adoptions) Adopt(ctx context.Context, q Asked) (done Adopted, err error) {
	if err := q.Order.Check(); err != nil {
		return done, err
	}
	if known, err := a.known(ctx, q); err != nil || known.Operation.ID != "" {
		return known, err
	}
	s, agent, err := a.base.ServerOf(ctx, q.Server)
	if err != nil {
		return done, base.NotFound(err, fault.Invalid("server", "is none"))
	}
	all, err := base.Inventory(ctx, agent)
	if err != nil {
		return done, fault.Wrap(err, fault.AgentError, "the agent of %s does not say what it has: %s", s.Name, err)
	}
	has, err := adoption.Pick(all, q.Database)
	if err != nil {
		return done, err
	}
	found, err := adoption.Look(has, q.Wanted)
	if err != nil {
		return done, err
	}
	switch of, err := a.base.Record(ctx, has.DatabaseID); {
	case base.NotFound(err, nil) != nil:
		return done, err
	case err == nil && of.ServerID != s.ID && q.Drop:
		return a.dropLeft(ctx, q, of, s, has)
	case err == nil && of.ServerID != s.ID:
		return a.rehome(ctx, q, of, s, has)
	case q.Order.ServerGone:
		return done, fault.Invalid("serverGone", "is about the server that a record names, and it has none")
	}
	draft, roles, allowlist, err := a.draft(ctx, q, s, agent, has, found)
	if err != nil {
		return done, err
	}
	return a.store(ctx, q, draft, roles, allowlist, found)
}

// known is what was asked for before; nothing where there is no record of a database of that ID. A record that was not adopted is
// DATABASE_STATE_CONFLICT. No server is asked.
func (a *Adoptions) known(ctx context.Context, q Asked) (done Adopted, err error) {
	db, err := id.Parse[id.DatabaseID](q.Database)
	if err != nil { // it is a name, which is compared where the record is stored
		return done, nil //nolint:nilerr // see above
	}
	return ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) (Adopted, error) {
		return a.adopted(ctx, tx, db, q)
	})
}

// adopted is the adoption by which a database has its record, as it is wanted; nothing where it has none, or the record names
// another server.
func (a *Adoptions) adopted(ctx context.Context, tx ports.Tx, db id.DatabaseID, q Asked) (done Adopted, err error) {
	if done.Record, err = tx.Databases().Get(ctx, db); err != nil || done.Record.ServerID != q.Server {
		return Adopted{}, base.NotFound(err, nil)
	}
	list, err := tx.Operations().List(ctx, db, []operation.Kind{Kind}, ports.Page{Limit: 1})
	if err != nil {
		return Adopted{}, err
	}
	if len(list) == 0 {
		return Adopted{}, fault.New(fault.DatabaseStateConflict, "it has a record: %s is %s", done.Record.Name, done.Record.Status)
	}
	done.Operation = list[0]
	input, err := operation.Decode[adoption.Input](done.Operation.Input)
	if err == nil && q.Drop && input.Fate == adoption.Serves {
		err = fault.New(fault.DatabaseStateConflict, "it was adopted as %s: its owner deletes it as any other", done.Record.Name)
	}
	done.Fate, done.Notes = input.Fate, input.Notes
	return done, err
}

// draft completes what was found by what only this service has: whose it is, the key of its backups, and passwords.
func (a *Adoptions) draft(
	ctx context.Context, q Asked, s server.Server, agent ports.Agent, has command.InventoryDatabase, found adoption.Found,
) (d provision.Draft, roles []role.Role, allowlist []database.AllowlistEntry, err error) {
	owner, err := a.owner(ctx, q.Account, has.AccountID)
	if err != nil {
		return d, nil, nil, err
	}
	key, err := ports.Ask(ctx, agent, command.AskBackupKey{DatabaseID: has.DatabaseID})
	if err == nil {
		if sum := sha256.Sum256(key.Key); !key.Whole() || hex.EncodeToString(sum[:]) != has.BackupKeyMark {
			err = command.Refuse(command.ReasonFailed, "the key is not the one that it has marked")
		}
	}
	if err != nil {
		return d, nil, nil, fault.Wrap(err, fault.AgentError, "the agent of %s does not tell the key of its backups: %s", s.Name, err)
	}
	r := found.Record
	if r.PostgresVersion, err = base.PostgresOf(ctx, s, agent); err != nil {
		return d, nil, nil, err
	}
	r.AccountID, r.ServerID, r.Plan, r.DatabaseBytes = owner.ID, s.ID, owner.Plan, owner.DatabaseBytes
	r.Schedule = a.base.DefaultSchedule
	if r.OverlayStatus == database.OverlayActive {
		r.OverlayID = base.NewID[id.OperationID](a.base.Entropy)
	}
	if d, err = provision.Found(a.base, r, key.Key, found.Credentials); err != nil {
		return d, nil, nil, err
	}
	for _, one := range found.Roles {
		if one, err = provision.FoundRole(a.base, one); err != nil {
			return d, nil, nil, err
		}
		roles = append(roles, one)
	}
	for _, n := range found.Networks {
		allowlist = append(allowlist, database.AllowlistEntry{
			ID: base.NewID[id.AllowlistEntryID](a.base.Entropy), DatabaseID: r.ID, CIDR: n.String(), CreatedAt: d.Record.CreatedAt,
		})
	}
	return d, roles, allowlist, nil
}

// owner is whose a database becomes.
func (a *Adoptions) owner(ctx context.Context, asked, told id.AccountID) (account.Account, error) {
	return ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) (account.Account, error) {
		if told != "" {
			known, err := tx.Accounts().Get(ctx, told)
			switch err := base.NotFound(err, nil); {
			case err != nil:
				return known, err
			case known.ID != "" && asked != "" && asked != told:
				return known, fault.Invalid("account", "is another one than the agent knows, which is %s", told)
			case known.ID != "":
				return known, nil
			}
		}
		if asked == "" {
			return account.Account{}, fault.Invalid("account",
				"is to be said: the metadata have none that the agent knows for this database (%s)", orUnknown(told))
		}
		owner, err := tx.Accounts().Get(ctx, asked)
		return owner, base.NotFound(err, fault.Invalid("account", "is none"))
	})
}

func orUnknown(of id.AccountID) string {
	if of == "" {
		return "it was told none"
	}
	return string(of)
}

// store stores the intent: record, key, logins, roles, allowlist and operation. Whatever it returns was read by the transaction
// that was committed, as an earlier run of it may have been taken back.
func (a *Adoptions) store(
	ctx context.Context, q Asked, d provision.Draft, roles []role.Role, allowlist []database.AllowlistEntry, found adoption.Found,
) (done Adopted, err error) {
	known := false
	err = a.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if done, err = a.adopted(ctx, tx, d.Record.ID, q); err != nil {
			return err
		}
		if known = done.Operation.ID != ""; known {
			return nil
		}
		input := adoption.Input{
			Fate: found.Fate, Open: found.Open, Generation: d.Record.AccessGeneration, Notes: found.Notes,
			By: q.Order.By, Reason: q.Order.Reason,
		}
		o := a.base.Work.Queued(d.Record, Kind, operation.Encode(input), work.Origin{Actor: audit.Operator})
		done = Adopted{Record: d.Record, Operation: o, Fate: found.Fate, Notes: found.Notes}
		return d.StoreFound(ctx, tx, roles, allowlist, func() error {
			if err := tx.Operations().Add(ctx, o); err != nil {
				return err
			}
			return a.base.Audit(ctx, tx, d.Record, audit.Operator, audit.AdoptRequested, audit.Details{
				"operationId": string(o.ID), "operator": q.Order.By, "reason": q.Order.Reason, "name": d.Record.Name,
				"fate": string(found.Fate),
			})
		})
	})
	if err == nil && !known {
		a.base.Work.Reserved(Kind)
	}
	return done, err
}
