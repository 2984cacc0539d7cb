package wire

import (
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Login is a login that was created with the database.
type Login struct {
	Login                database.Login `json:"login"`
	Username             string         `json:"username"`
	ConnectionLimit      int            `json:"connectionLimit"`
	CredentialGeneration int64          `json:"credentialGeneration"`
}

// RevealedLogin adds the password and how to connect.
type RevealedLogin struct {
	Login
	Credential
}

// LoginRotation is the change of a login's password. It has the owner's new password once, which nothing else reveals.
type LoginRotation struct {
	OperationID          id.OperationID    `json:"operationId" format:"uuid"`
	Login                database.Login    `json:"login"`
	Kind                 role.Kind         `json:"kind" enum:"rotate"`
	Status               role.ChangeStatus `json:"status" enum:"pending,completed"`
	CredentialGeneration int64             `json:"credentialGeneration"`
	Password             string            `json:"password,omitzero"`
}
