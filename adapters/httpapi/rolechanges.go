package httpapi

import (
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

// progress answers 202 while a change is pending, and 200 when it has ended.
func progress(c role.Change, body any) Answer {
	if c.Open() {
		return Accepted(body)
	}
	return OK(body)
}

func (c customRoles) change(r *Request) (Answer, error) {
	body := Decoded[wire.ChangeRole](r)
	if err := confirmed("confirmDisconnect", body.ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	change, err := c.use.Change(r.Context(), r.database(), r.roleID(), body.Kind, r.Key)
	return progress(change, viewChange(change)), err
}

// operationID is the change or the operation that the path names after its database.
func (r *Request) operationID() id.OperationID { return id.OperationID(r.Param("operationId")) }

func (c customRoles) readChange(r *Request) (Answer, error) {
	change, err := c.use.ReadChange(r.Context(), r.database(), r.roleID(), r.operationID())
	return OK(viewChange(change)), err
}

func (c customRoles) replayChange(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	change, err := c.use.ReplayChange(r.Context(), r.database(), r.roleID(), r.operationID())
	return progress(change, viewChange(change)), err
}

func answerRemoval(m roles.Removal) Answer {
	if m.Done {
		return OK(wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Removed)})
	}
	v := wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Pending), Phase: m.Phase}
	if m.Phase == roles.RevokePhase {
		v.OperationID = m.OperationID
	}
	return Accepted(v)
}

func (c customRoles) delete(r *Request) (Answer, error) {
	if err := confirmed("confirm", Decoded[wire.DeleteRole](r).Confirm); err != nil {
		return Answer{}, err
	}
	m, err := c.use.Delete(r.Context(), r.database(), r.roleID())
	return answerRemoval(m), err
}

func (c customRoles) remove(r *Request) (Answer, error) {
	m, err := c.use.Remove(r.Context(), r.database(), r.roleID())
	if m.Done {
		return answerRemoval(m), err
	}
	return Accepted(wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Pending)}), err
}
