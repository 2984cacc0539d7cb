package wire

import (
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Login is a login that was created with the database.
type Login struct {
	Login                database.Login `json:"login"`
	Username             string         `json:"username" example:"pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_rt"`
	ConnectionLimit      int            `json:"connectionLimit" example:"60"`
	CredentialGeneration int64          `json:"credentialGeneration" example:"2"`
}

// RevealedLogin adds the password and how to connect.
type RevealedLogin struct {
	Login
	Credential
}

// LoginRotation is the change of a login's password. It has the owner's new password once, which nothing else reveals.
type LoginRotation struct {
	OperationID          id.OperationID    `json:"operationId"`
	Login                database.Login    `json:"login"`
	Kind                 role.Kind         `json:"kind" enum:"rotate"`
	Status               role.ChangeStatus `json:"status" enum:"pending,completed"`
	CredentialGeneration int64             `json:"credentialGeneration" example:"2"`
	Password             string            `json:"password,omitzero" example:"gK3vT9wQ2mZx7bLr"`
}
