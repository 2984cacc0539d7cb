package spec

import "time"

// RoleAPI makes and manages the additional roles of a database.
type RoleAPI interface {
	// Roles are those that are not removed, by ordinal; revoked ones on request.
	Roles(database string, revoked bool) ([]Role, error)
	CreateRole(database string, n NewRole) (Role, error)
	PrepareRole(database, role string) (Role, error)
	AdmitRole(database, role string) (Role, error)
	RenameRole(database, role, displayName string) (Renamed, error)
	RevealRole(database, role string) (Credential, error)
	// DeleteRole revokes a role where needed, and removes it; RemoveRole removes one that is revoked.
	DeleteRole(database, role string) (Removal, error)
	RemoveRole(database, role string) (Removal, error)
}

// RoleChangeAPI changes the credentials of additional roles.
type RoleChangeAPI interface {
	// ChangeRole rotates or revokes: kind is "rotate" or "revoke", key the idempotency key.
	ChangeRole(database, role, kind, key string) (RoleChange, error)
	RoleChange(database, role, operation string) (RoleChange, error)
	// ReplayChange sends a recorded change again.
	ReplayChange(database, role, operation string) (RoleChange, error)
}

// LoginAPI manages the logins that a database came with: "owner", "runtime" and "readonly".
type LoginAPI interface {
	ManagedLogins(database string) ([]ManagedLogin, error)
	RevealLogin(database, login string) (LoginCredential, error)
	RotateLogin(database, login, key string) (LoginRotation, error)
}

// NewRole asks for an additional role.
type NewRole struct {
	DisplayName     string `json:"displayName"`
	AccessProfile   string `json:"accessProfile"`
	ConnectionLimit int    `json:"connectionLimit"`
	IdempotencyKey  string `json:"-"`
}

// Role is an additional role.
type Role struct {
	RoleID               string     `json:"roleId"`
	Profile              string     `json:"profile"`
	DisplayName          string     `json:"displayName"`
	AccessProfile        string     `json:"accessProfile"`
	Username             string     `json:"username"`
	Ordinal              int        `json:"ordinal"`
	ConnectionLimit      int        `json:"connectionLimit"`
	Generation           int64      `json:"generation"`
	CredentialGeneration int64      `json:"credentialGeneration"`
	CredentialExpiresAt  *time.Time `json:"credentialExpiresAt"`
	Status               string     `json:"status"`
	OperationID          *string    `json:"operationId"` // in lists only
}

// Renamed is the answer to a rename.
type Renamed struct {
	RoleID      string `json:"roleId"`
	DisplayName string `json:"displayName"`
}

// Credential is a role with its password.
type Credential struct {
	Role
	Way
}

// Way is where a login gets in, and with what.
type Way struct {
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Database    string `json:"database"`
	TLSRequired bool   `json:"tlsRequired"`
	Password    string `json:"password"`
}

// Login is how the role logs in.
func (c Credential) Login() Login { return c.login(c.Username) }

func (w Way) login(username string) Login {
	return Login{Database: w.Database, Username: username, Password: w.Password, From: Home}
}

// RoleChange is a rotation or a revocation.
type RoleChange struct {
	OperationID          string `json:"operationId"`
	RoleID               string `json:"roleId"`
	Profile              string `json:"profile"`
	Kind                 string `json:"kind"`
	Status               string `json:"status"`
	CredentialGeneration int64  `json:"credentialGeneration"`
}

// Removal is how far the removal of a role has come.
type Removal struct {
	RoleID      string `json:"roleId"`
	Status      string `json:"status"`
	Phase       string `json:"phase"`
	OperationID string `json:"operationId"`
}

// ManagedLogin is a login that came with a database.
type ManagedLogin struct {
	Login                string `json:"login"`
	Username             string `json:"username"`
	ConnectionLimit      int    `json:"connectionLimit"`
	CredentialGeneration int64  `json:"credentialGeneration"`
}

// LoginCredential is a managed login with its password.
type LoginCredential struct {
	ManagedLogin
	Way
}

// LogIn is how the login gets in.
func (c LoginCredential) LogIn() Login { return c.login(c.Username) }

// LoginRotation is a new password of a managed login; of the owner's it tells the password, once.
type LoginRotation struct {
	OperationID          string `json:"operationId"`
	Login                string `json:"login"`
	Kind                 string `json:"kind"`
	Status               string `json:"status"`
	CredentialGeneration int64  `json:"credentialGeneration"`
	Password             string `json:"password"`
}

// Dependency is something that keeps a role from being removed.
type Dependency struct {
	Kind       string `json:"kind"`
	ObjectType string `json:"objectType"`
	Schema     string `json:"schema"`
	Name       string `json:"name"`
	Identity   string `json:"identity"`
}

// Hints are what some refusals of roles add.
type Hints struct {
	DatabaseName string       `json:"databaseName"`
	Username     string       `json:"username"`
	GrantSQL     string       `json:"grantSql"`
	Dependencies []Dependency `json:"dependencies"`
	Truncated    *bool        `json:"truncated"`
}
