package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
)

// legacyRoles are the additional roles of databases with a single login.
type legacyRoles struct {
	customRoles
	use roles.LegacyRoles
}

func (l legacyRoles) optIn(r *serve.Request) (_ wire.Overlay, isDone bool, _ error) {
	o, err := l.use.OptIn(r.Context(), databaseOf(r))
	return viewOverlay(o), o.OverlayStatus == database.OverlayActive, err
}

func viewOverlay(o database.Overlay) wire.Overlay {
	return wire.Overlay{OverlayID: o.OverlayID, Generation: o.OverlayGeneration, Status: o.OverlayStatus}
}

func (l legacyRoles) prepare(r *serve.Request) (wire.ConnectGrant, error) {
	prepared, err := l.use.Prepare(r.Context(), databaseOf(r), roleOf(r))
	return viewGrant(prepared, databaseOf(r).Record().Name), err
}

func viewGrant(s roles.State, database string) wire.ConnectGrant {
	return wire.ConnectGrant{RoleSetup: viewSetup(s), DatabaseName: database, GrantSQL: s.GrantConnect(database)}
}

func (l legacyRoles) reconcile(r *serve.Request) (wire.ListedRole, error) {
	found, err := l.use.Reconcile(r.Context(), databaseOf(r), roleOf(r))
	return viewListedRole(found), err
}

func (l legacyRoles) delete(r *serve.Request) (_ wire.RoleRemoval, isDone bool, _ error) {
	m, err := l.use.Delete(r.Context(), databaseOf(r), roleOf(r))
	return viewRemoval(m), m.Done, err
}
