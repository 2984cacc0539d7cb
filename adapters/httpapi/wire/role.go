package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Role is an additional role. Generation is that of the database's role set. CredentialExpiresAt is there only where the
// credential's validity ends.
type Role struct {
	RoleID               id.RoleID          `json:"roleId" format:"uuid"`
	Profile              string             `json:"profile" enum:"custom"`
	DisplayName          string             `json:"displayName"`
	AccessProfile        role.AccessProfile `json:"accessProfile"`
	Username             string             `json:"username"`
	Ordinal              int                `json:"ordinal"`
	ConnectionLimit      int                `json:"connectionLimit"`
	Generation           int64              `json:"generation"`
	CredentialGeneration int64              `json:"credentialGeneration"`
	Status               role.Status        `json:"status" enum:"reserved,sql_ready,ready,updating,revoked,expired"`
	CredentialExpiresAt  *time.Time         `json:"credentialExpiresAt,omitzero"`
}

// ListedRole adds what only the list tells: the pending change of a role that is updating.
type ListedRole struct {
	Role
	OperationID *id.OperationID `json:"operationId" format:"uuid"`
}

// RoleSetup is what the two steps of a set-up answer.
type RoleSetup struct {
	RoleID        id.RoleID          `json:"roleId" format:"uuid"`
	Profile       string             `json:"profile" enum:"custom"`
	Username      string             `json:"username"`
	DisplayName   string             `json:"displayName"`
	AccessProfile role.AccessProfile `json:"accessProfile"`
	Ordinal       int                `json:"ordinal"`
	Status        role.Status        `json:"status" enum:"sql_ready,ready"`
}

// Credential is how to log in. The pooler takes connections with TLS only.
type Credential struct {
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Database    string `json:"database"`
	TLSRequired bool   `json:"tlsRequired"`
	Password    string `json:"password"`
}

// RevealedRole is the only answer with a role's password.
type RevealedRole struct {
	Role
	Credential
}

// RoleLabel is the answer to a new label.
type RoleLabel struct {
	RoleID      id.RoleID `json:"roleId" format:"uuid"`
	DisplayName string    `json:"displayName"`
}

// CreateRole asks for an additional role.
type CreateRole struct {
	DisplayName     string             `json:"displayName" description:"1-64 characters, unique among the database's roles"`
	AccessProfile   role.AccessProfile `json:"accessProfile"`
	ConnectionLimit int                `json:"connectionLimit" description:"1 or more, within the database's role budget"`
}

// RenameRole replaces the label of a role.
type RenameRole struct {
	DisplayName string `json:"displayName" description:"1-64 characters, unique among the database's roles"`
}
