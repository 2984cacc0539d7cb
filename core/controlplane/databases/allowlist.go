package databases

import (
	"context"
	"net/netip"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Allowlist keeps the networks that may connect to a database. Its generation grows with every change; a change is stored
// first and then pushed to the server, and a periodic task pushes again what a crash or an outage left behind.
type Allowlist struct{ base *base.Base }

// NewAllowlist makes the use cases, and registers their periodic task.
func NewAllowlist(p *base.Base) *Allowlist {
	a := &Allowlist{base: p}
	p.RegisterPushed(a.pushed())
	return a
}

// List returns the entries, oldest first. It never returns FORBIDDEN: whoever sees the database sees its allowlist.
func (a *Allowlist) List(ctx context.Context, r access.Reached) ([]database.AllowlistEntry, error) {
	if err := r.Permit(account.See); err != nil {
		return nil, err
	}
	return ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.AllowlistEntry, error) {
		return tx.Allowlist().List(ctx, r.Record().ID)
	})
}

// Add allows one more network to connect, and returns when the server enforces it. FORBIDDEN: a developer or viewer.
// VALIDATION_ERROR on "description", and on "cidr": no network, a duplicate, or too many entries. DATABASE_STATE_CONFLICT
// while the database is being created or deleted. AGENT_ERROR: the change is stored, and enforced as soon as the server
// answers.
func (a *Allowlist) Add(
	ctx context.Context, r access.Reached, cidr, description string,
) (database.AllowlistEntry, error) {
	network, err := database.ParseCIDR(cidr)
	if err != nil {
		return database.AllowlistEntry{}, err
	}
	if description, err = database.ValidateDescription(description); err != nil {
		return database.AllowlistEntry{}, err
	}
	entry := database.AllowlistEntry{
		ID: base.NewID[id.AllowlistEntryID](a.base.Entropy), DatabaseID: r.Record().ID, CIDR: network.String(),
		Description: description, CreatedAt: a.base.Clock.Now(),
	}
	err = a.change(ctx, r, audit.AllowlistAdded, func(ctx context.Context, tx ports.Tx) (database.AllowlistEntry, error) {
		existing, err := tx.Allowlist().List(ctx, r.Record().ID)
		if err != nil {
			return entry, err
		}
		if err := database.AdmitEntry(existing, network); err != nil {
			return entry, err
		}
		return entry, tx.Allowlist().Add(ctx, entry)
	})
	return entry, err
}

// Remove removes a network from the list; connections that no entry allows any more are closed. Errors as for Add, and
// ALLOWLIST_ENTRY_NOT_FOUND.
func (a *Allowlist) Remove(ctx context.Context, r access.Reached, entry id.AllowlistEntryID) error {
	return a.change(ctx, r, audit.AllowlistRemoved, func(ctx context.Context, tx ports.Tx) (database.AllowlistEntry, error) {
		removed, err := tx.Allowlist().Remove(ctx, r.Record().ID, entry)
		return removed, base.NotFound(err, fault.New(fault.AllowlistEntryNotFound, "no such allowlist entry"))
	})
}

func (a *Allowlist) change(
	ctx context.Context, r access.Reached, what audit.Action, apply func(context.Context, ports.Tx) (database.AllowlistEntry, error),
) error {
	release, err := r.PermitCall(ctx, a.base, account.Configure)
	if err != nil {
		return err
	}
	defer release()
	err = r.Update(ctx, a.base, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		if _, err := record.Status.Decide(database.Configure); err != nil {
			return err
		}
		entry, err := apply(ctx, tx)
		if err != nil {
			return err
		}
		record.AllowlistGeneration++
		if err := tx.Databases().Save(ctx, record); err != nil {
			return err
		}
		return a.base.Audit(ctx, tx, record, r.Caller().Actor(), what, audit.Details{"cidr": entry.CIDR})
	})
	if err != nil {
		return err
	}
	a.base.Crash(CrashAllowlistStored)
	if err := a.base.Push(ctx, r.Record().ID, a.pushed()); err != nil {
		return fault.Wrap(err, fault.AgentError,
			"the change is stored, and enforced as soon as the database server answers")
	}
	return nil
}

func (a *Allowlist) pushed() base.PushedState {
	return base.PushedState{
		Name: "allowlist", Task: "allowlists", Due: ports.DueAllowlist, Send: a.send,
		Command: func(ctx context.Context, db id.DatabaseID) (command.Command, error) {
			_, spec, err := a.allowlistSpec(ctx, db)
			return spec, err
		},
		Kind:       command.SetAllowlist{}.About().Kind,
		Generation: func(r *database.Record) *int64 { return &r.AllowlistGeneration },
		Applied:    func(r *database.Record) *int64 { return &r.AllowlistApplied },
	}
}

// send makes the server enforce the stored list, and records that it does.
func (a *Allowlist) send(ctx context.Context, db id.DatabaseID) (sent int64, err error) {
	record, spec, err := a.allowlistSpec(ctx, db)
	if err != nil || record.AllowlistApplied >= spec.Generation {
		return 0, err
	}
	agent, err := a.base.AgentOf(ctx, record.ServerID)
	if err != nil {
		return 0, err
	}
	if err := ports.Tell(ctx, agent, ports.Fence{}, spec); err != nil {
		return spec.Generation, err
	}
	a.base.Crash(CrashAllowlistApplied)
	return spec.Generation, a.allowlistApplied(ctx, spec)
}

func (a *Allowlist) allowlistApplied(ctx context.Context, spec command.SetAllowlist) error {
	return a.base.UpdateDatabase(ctx, spec.DatabaseID, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		if stored.AllowlistApplied >= spec.Generation {
			return nil
		}
		stored.AllowlistApplied = spec.Generation
		return tx.Databases().Save(ctx, stored)
	})
}

// allowlistSpec reads list and generation in one transaction, so that they are consistent.
func (a *Allowlist) allowlistSpec(
	ctx context.Context, db id.DatabaseID,
) (record database.Record, spec command.SetAllowlist, err error) {
	err = a.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		record = locked
		entries, err := tx.Allowlist().List(ctx, db)
		if err != nil {
			return err
		}
		spec = command.SetAllowlist{DatabaseID: db, Generation: record.AllowlistGeneration}
		for _, e := range entries {
			network, err := netip.ParsePrefix(e.CIDR)
			if err != nil {
				return err
			}
			spec.Networks = append(spec.Networks, network)
		}
		return nil
	})
	return record, spec, err
}
