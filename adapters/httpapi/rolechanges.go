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
	change, err := c.use.Change(r.Context(), r.reached(), r.roleID(), body.Kind, r.Key)
	if err != nil {
		return Answer{}, err
	}
	return progress(change, viewChange(change)), nil
}

// changeID is the change that the path names.
func (r *Request) changeID() id.OperationID { return id.OperationID(r.Param("operationId")) }

func (c customRoles) readChange(r *Request) (Answer, error) {
	change, err := c.use.ReadChange(r.Context(), r.reached(), r.roleID(), r.changeID())
	if err != nil {
		return Answer{}, err
	}
	return OK(viewChange(change)), nil
}

func (c customRoles) replayChange(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	change, err := c.use.ReplayChange(r.Context(), r.reached(), r.roleID(), r.changeID())
	if err != nil {
		return Answer{}, err
	}
	return progress(change, viewChange(change)), nil
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
	m, err := c.use.Delete(r.Context(), r.reached(), r.roleID())
	if err != nil {
		return Answer{}, err
	}
	return answerRemoval(m), nil
}

func (c customRoles) remove(r *Request) (Answer, error) {
	m, err := c.use.Remove(r.Context(), r.reached(), r.roleID())
	switch {
	case err != nil:
		return Answer{}, err
	case m.Done:
		return OK(wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Removed)}), nil
	}
	return Accepted(wire.RoleRemoval{RoleID: m.RoleID, Status: string(role.Pending)}), nil
}
