package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

func viewChange(c role.Change) wire.RoleChange {
	return wire.RoleChange{
		OperationID: c.ID, RoleID: c.RoleID, Profile: role.Profile, Kind: c.Kind, Status: c.Status,
		CredentialGeneration: c.CredentialGeneration,
	}
}

func (c customRoles) change(r *serve.Request) (_ wire.RoleChange, isDone bool, _ error) {
	body := serve.Decoded[wire.ChangeRole](r)
	if err := confirmed("confirmDisconnect", body.ConfirmDisconnect); err != nil {
		return wire.RoleChange{}, false, err
	}
	change, err := c.use.Change(r.Context(), databaseOf(r), roleOf(r), body.Kind, r.Key)
	return viewChange(change), !change.Open(), err
}

// operationOf is the change or the operation that the path names after its database.
func operationOf(r *serve.Request) id.OperationID { return id.OperationID(r.Param("operationId")) }

func (c customRoles) readChange(r *serve.Request) (wire.RoleChange, error) {
	change, err := c.use.ReadChange(r.Context(), databaseOf(r), roleOf(r), operationOf(r))
	return viewChange(change), err
}

func (c customRoles) replayChange(r *serve.Request) (_ wire.RoleChange, isDone bool, _ error) {
	if err := confirmed("confirmDisconnect", serve.Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return wire.RoleChange{}, false, err
	}
	change, err := c.use.ReplayChange(r.Context(), databaseOf(r), roleOf(r), operationOf(r))
	return viewChange(change), !change.Open(), err
}

func viewRemoval(m roles.Removal) wire.RoleRemoval {
	if m.Done {
		return wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Removed)}
	}
	v := wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Pending), Phase: m.Phase}
	if m.Phase == roles.RevokePhase {
		v.OperationID = m.OperationID
	}
	return v
}

func (c customRoles) delete(r *serve.Request) (_ wire.RoleRemoval, isDone bool, _ error) {
	if err := confirmed("confirm", serve.Decoded[wire.DeleteRole](r).Confirm); err != nil {
		return wire.RoleRemoval{}, false, err
	}
	m, err := c.use.Delete(r.Context(), databaseOf(r), roleOf(r))
	return viewRemoval(m), m.Done, err
}

func (c customRoles) remove(r *serve.Request) (_ wire.RoleRemoval, isDone bool, _ error) {
	m, err := c.use.Remove(r.Context(), databaseOf(r), roleOf(r))
	view := viewRemoval(m)
	view.Phase, view.OperationID = "", ""
	return view, m.Done, err
}
