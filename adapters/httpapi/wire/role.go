package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Role is an additional role. Generation is that of the database's role set. CredentialExpiresAt is there only where the
// credential's validity ends.
type Role struct {
	RoleID               id.RoleID          `json:"roleId"`
	Profile              string             `json:"profile" enum:"custom"`
	DisplayName          string             `json:"displayName" example:"Reports"`
	AccessProfile        role.AccessProfile `json:"accessProfile"`
	Username             string             `json:"username" example:"pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_c1"`
	Ordinal              int                `json:"ordinal" example:"1"`
	ConnectionLimit      int                `json:"connectionLimit" example:"5"`
	Generation           int64              `json:"generation" example:"3"`
	CredentialGeneration int64              `json:"credentialGeneration" example:"1"`
	Status               role.Status        `json:"status" enum:"reserved,sql_ready,ready,updating,revoked,expired"`
	CredentialExpiresAt  *time.Time         `json:"credentialExpiresAt,omitzero"`
}

// ListedRole adds what only the list tells: the pending change of a role that is updating.
type ListedRole struct {
	Role
	OperationID *id.OperationID `json:"operationId"`
}

// RoleSetup is what the two steps of a set-up answer.
type RoleSetup struct {
	RoleID        id.RoleID          `json:"roleId"`
	Profile       string             `json:"profile" enum:"custom"`
	Username      string             `json:"username" example:"pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_c1"`
	DisplayName   string             `json:"displayName" example:"Reports"`
	AccessProfile role.AccessProfile `json:"accessProfile"`
	Ordinal       int                `json:"ordinal" example:"1"`
	Status        role.Status        `json:"status" enum:"sql_ready,ready"`
}

// Overlay is the opt-in of a database with a single login.
type Overlay struct {
	OverlayID  id.OperationID         `json:"overlayId"`
	Generation int64                  `json:"generation" example:"1"`
	Status     database.OverlayStatus `json:"status"`
}

// ConnectGrant is what the owner runs before a prepared role of a database with a single login can be admitted.
type ConnectGrant struct {
	RoleSetup
	DatabaseName string `json:"databaseName" example:"orders"`
	GrantSQL     string `json:"grantSql" example:"GRANT CONNECT ON DATABASE \"orders\" TO \"pgh_..._l1\";"`
}

// Credential is how to log in. The pooler takes connections with TLS only.
type Credential struct {
	Host        string `json:"host" example:"db1.example.com"`
	Port        int    `json:"port" example:"6432"`
	Database    string `json:"database" example:"orders"`
	TLSRequired bool   `json:"tlsRequired" example:"true"`
	Password    string `json:"password" example:"gK3vT9wQ2mZx7bLr"`
}

// RevealedRole is the only answer with a role's password.
type RevealedRole struct {
	Role
	Credential
}

// RoleLabel is the answer to a new label.
type RoleLabel struct {
	RoleID      id.RoleID `json:"roleId"`
	DisplayName string    `json:"displayName" example:"Reports"`
}

// CreateRole asks for an additional role.
type CreateRole struct {
	DisplayName     string             `json:"displayName" description:"1-64 characters, unique in the database" example:"Reports"`
	AccessProfile   role.AccessProfile `json:"accessProfile"`
	ConnectionLimit int                `json:"connectionLimit" description:"within the budget, or 20" minimum:"1" example:"5"`
}

// RenameRole replaces the label of a role.
type RenameRole struct {
	DisplayName string `json:"displayName" description:"1-64 characters, unique in the database" example:"Reports"`
}
