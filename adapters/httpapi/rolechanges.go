package httpapi

import (
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// changeView is the spec's role change.
type changeView struct {
	OperationID          id.OperationID    `json:"operationId" format:"uuid"`
	RoleID               id.RoleID         `json:"roleId" format:"uuid"`
	Profile              string            `json:"profile" enum:"custom"`
	Kind                 role.Kind         `json:"kind" enum:"rotate,revoke"`
	Status               role.ChangeStatus `json:"status" enum:"pending,completed"`
	CredentialGeneration int64             `json:"credentialGeneration"`
}

func viewChange(c role.Change) changeView {
	return changeView{c.ID, c.RoleID, role.Profile, c.Kind, c.Status, c.CredentialGeneration}
}

// progress answers 202 while a change is pending, and 200 when it has ended.
func progress(c role.Change, body any) Answer {
	if c.Open() {
		return Accepted(body)
	}
	return OK(body)
}

type changeBody struct {
	Kind              *string `json:"kind" required:"true" enum:"rotate,revoke"`
	ConfirmDisconnect *bool   `json:"confirmDisconnect" required:"true" doc:"true: open connections are closed"`
}

func (c customRoles) change(r *Request) (Answer, error) {
	body := Decoded[changeBody](r)
	if err := confirmed("confirmDisconnect", body.ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	change, err := c.use.Change(r.Context(), r.reached(), r.roleID(), role.Kind(*body.Kind), r.Key)
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

type disconnectBody struct {
	ConfirmDisconnect *bool `json:"confirmDisconnect" required:"true" doc:"true: open connections are closed"`
}

func (c customRoles) replayChange(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[disconnectBody](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	change, err := c.use.ReplayChange(r.Context(), r.reached(), r.roleID(), r.changeID())
	if err != nil {
		return Answer{}, err
	}
	return progress(change, viewChange(change)), nil
}

// removalView says how far the removal of a role has come. While its log-in is still being shut, OperationID is that change.
type removalView struct {
	RoleID      id.RoleID      `json:"roleId" format:"uuid"`
	Status      string         `json:"status" enum:"removed,pending"`
	Phase       string         `json:"phase,omitzero" enum:"revoke,remove"`
	OperationID id.OperationID `json:"operationId,omitzero" format:"uuid"`
}

// briefRemovalView is the same without the phase: the role was revoked before.
type briefRemovalView struct {
	RoleID id.RoleID `json:"roleId" format:"uuid"`
	Status string    `json:"status" enum:"removed,pending"`
}

func answerRemoval(m controlplane.Removal) Answer {
	if m.Done {
		return OK(removalView{RoleID: m.RoleID, Status: string(role.Removed)})
	}
	v := removalView{RoleID: m.RoleID, Status: string(role.Pending), Phase: m.Phase}
	if m.Phase == controlplane.RevokePhase {
		v.OperationID = m.OperationID
	}
	return Accepted(v)
}

type deletionBody struct {
	Confirm *bool `json:"confirm" required:"true" doc:"true: the role is revoked and removed"`
}

func (c customRoles) delete(r *Request) (Answer, error) {
	if err := confirmed("confirm", Decoded[deletionBody](r).Confirm); err != nil {
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
		return OK(briefRemovalView{m.RoleID, string(role.Removed)}), nil
	}
	return Accepted(briefRemovalView{m.RoleID, string(role.Pending)}), nil
}
