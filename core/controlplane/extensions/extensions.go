// Package extensions shows the PostgreSQL extensions of databases, installs and upgrades them.
package extensions

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Extensions shows and changes the extensions of databases (spec, section "Extensions"). Nothing is ever installed without a
// request.
type Extensions struct{ base *base.Base }

// New makes the use cases, and registers their kind.
func New(p *base.Base) *Extensions {
	x := &Extensions{base: p}
	x.register()
	return x
}

// Catalog returns the extensions of the catalog, in its order, as the database has them now. DATABASE_STATE_CONFLICT: it is not
// active. AGENT_ERROR: its server cannot say. AGENT_ROUTE_UNAVAILABLE: its agent is to be updated.
func (x *Extensions) Catalog(ctx context.Context, r access.Reached) ([]extension.Entry, error) {
	if err := r.Permit(account.See, rollout.ExtensionCatalog); err != nil {
		return nil, err
	}
	if status := r.Record().Status; status != database.Active {
		return nil, fault.New(fault.DatabaseStateConflict, "the catalog is that of an active database, and the status is %s", status)
	}
	release, err := r.MayCall(ctx, x.base)
	if err != nil {
		return nil, err
	}
	defer release()
	return x.ask(ctx, r.Record())
}

// ask has the server say how the extensions stand in a database, and adds what its trials have shown. AGENT_ERROR,
// AGENT_ROUTE_UNAVAILABLE.
func (x *Extensions) ask(ctx context.Context, r database.Record) ([]extension.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, x.base.RoleWait)
	defer cancel()
	agent, err := x.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return nil, err
	}
	found, err := ports.Ask(ctx, agent, command.Extensions{DatabaseID: r.ID})
	switch {
	case base.Unserved(err):
		return nil, fault.Wrap(err, fault.AgentRouteUnavailable,
			"extensions are unavailable until the agent of the database server is updated; nothing was changed")
	case err != nil:
		return nil, fault.Wrap(err, fault.AgentError, "the database server cannot say which extensions it has now")
	}
	trials, err := ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) ([]extension.Qualification, error) {
		return tx.Qualifications().Of(ctx, r.ServerID)
	})
	return catalog(found, trials), err
}

// catalog has an entry for each extension, whatever an agent has left out.
func catalog(found command.ExtensionList, trials []extension.Qualification) []extension.Entry {
	entries := make([]extension.Entry, len(extension.Names))
	for i, name := range extension.Names {
		entries[i].Name = name
		at := slices.IndexFunc(found.Entries, func(e command.ExtensionEntry) bool { return e.Name == name })
		if at < 0 {
			continue
		}
		e := found.Entries[at]
		entries[i] = extension.Entry{
			Name: name, Available: e.Available, Trusted: e.Trusted, DefaultVersion: e.DefaultVersion,
			InstalledVersion: e.InstalledVersion, Schema: e.Schema,
			RestoreQualified: extension.Proven(trials, name, e.DefaultVersion, found.ServerVersion),
		}
	}
	return entries
}
