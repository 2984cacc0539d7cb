package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
)

// legacyRoles are the additional roles of databases with a single login.
type legacyRoles struct {
	customRoles
	use roles.LegacyRoles
}

func (l legacyRoles) optIn(r *Request) (Answer, error) {
	overlay, err := l.use.OptIn(r.Context(), r.database())
	return answerOptIn(overlay), err
}

func answerOptIn(o database.Overlay) Answer {
	body := wire.Overlay{OverlayID: o.OverlayID, Generation: o.OverlayGeneration, Status: o.OverlayStatus}
	if o.OverlayStatus == database.OverlayActive {
		return OK(body)
	}
	return Accepted(body)
}

func (l legacyRoles) prepare(r *Request) (Answer, error) {
	prepared, err := l.use.Prepare(r.Context(), r.database(), r.roleID())
	return Accepted(viewGrant(prepared, r.database().Record().Name)), err
}

func viewGrant(s roles.State, database string) wire.ConnectGrant {
	return wire.ConnectGrant{RoleSetup: viewSetup(s), DatabaseName: database, GrantSQL: s.GrantConnect(database)}
}

func (l legacyRoles) reconcile(r *Request) (Answer, error) {
	found, err := l.use.Reconcile(r.Context(), r.database(), r.roleID())
	return OK(viewListedRole(found)), err
}

func (l legacyRoles) delete(r *Request) (Answer, error) {
	m, err := l.use.Delete(r.Context(), r.database(), r.roleID())
	return answerRemoval(m), err
}
