package wire

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// RoleChange is the rotation or the revocation of a role's password.
type RoleChange struct {
	OperationID          id.OperationID    `json:"operationId"`
	RoleID               id.RoleID         `json:"roleId"`
	Profile              string            `json:"profile" enum:"custom"`
	Kind                 role.Kind         `json:"kind" enum:"rotate,revoke"`
	Status               role.ChangeStatus `json:"status" enum:"pending,completed"`
	CredentialGeneration int64             `json:"credentialGeneration" example:"2"`
}

// ChangeRole rotates the password of a role, or revokes the role.
type ChangeRole struct {
	Kind              role.Kind `json:"kind" enum:"rotate,revoke"`
	ConfirmDisconnect bool      `json:"confirmDisconnect" description:"must be true: open connections are closed"`
}

// Disconnect confirms a change that closes connections.
type Disconnect struct {
	ConfirmDisconnect bool `json:"confirmDisconnect" description:"must be true: open connections are closed"`
}

// DeleteRole confirms that a role is revoked and removed.
type DeleteRole struct {
	Confirm bool `json:"confirm" description:"must be true: the role is revoked and removed"`
}

// RoleRemoval says how far the removal of a role has come. Only the route that also revokes names the phase, and while the log-in
// is still being shut, OperationID is that change.
type RoleRemoval struct {
	RoleID      id.RoleID      `json:"roleId"`
	Status      string         `json:"status" enum:"removed,pending"`
	Phase       string         `json:"phase,omitzero" enum:"revoke,remove"`
	OperationID id.OperationID `json:"operationId,omitzero"`
}
