package protocol

import "time"

// EnsureLogin brings one login of a database into the state of RolePayload. Its Step is the payload's Want.
const EnsureLogin Kind = "login.ensure"

// The desired states of a login. The values for changes are those of role.Kind; a test of adapters/agentclient keeps them
// equal.
const (
	LoginPrepared = "prepared" // exists without permission to log in, with CONNECT and its limit
	LoginOpen     = "open"     // has its grants and its password, and can log in
	LoginRotate   = "rotate"   // has a new password, and no connection of the old one is left
	LoginRevoke   = "revoke"   // has no password, and no connection of the old one is left
	LoginExpire   = "expire"   // cannot log in, and no connection of its password is left
	LoginRemove   = "remove"   // is dropped, unless something depends on it
)

// The access profiles of additional roles. They are the words of role.AccessProfile; the same test keeps them equal.
const (
	ProfileReadOnly  = "read_only"
	ProfileReadWrite = "read_write"
	ProfileCustom    = "custom"
)

// Secrets of a login.ensure command: the password that must work (open, rotate) and the one that must be refused (rotate,
// revoke, expire).
const (
	SecretNew = "new"
	SecretOld = "old"
)

// LoginResource names a login in Command.Resource.
func LoginResource(databaseID, username string) string {
	return DatabaseResource(databaseID) + "/login/" + username
}

// RolePayload is the payload of login.ensure.
type RolePayload struct {
	DatabaseID string `json:"databaseId"`
	Username   string `json:"username"`
	Want       string `json:"want"`
	// AccessProfile and ConnectionLimit are for prepared and open.
	AccessProfile   string `json:"accessProfile,omitempty"`
	ConnectionLimit int    `json:"connectionLimit,omitempty"`
	// Verifier (SCRAM-SHA-256) and ValidUntil are for open and rotate, CredentialGeneration for rotate.
	Verifier             string     `json:"verifier,omitempty"`
	ValidUntil           *time.Time `json:"validUntil,omitempty"`
	CredentialGeneration int64      `json:"credentialGeneration,omitempty"`
	// AccountDatabases are the IDs of the account's other databases: for remove.
	AccountDatabases []string `json:"accountDatabases,omitempty"`
}

// LoginProof is the result of rotate, revoke and expire. Its fields are those of role.Proof.
type LoginProof struct {
	ClientsClosed  int  `json:"clientsClosed"`
	SessionsEnded  int  `json:"sessionsEnded"`
	NoneLeft       bool `json:"noneLeft"`
	OldRefused     bool `json:"oldRefused"`
	NewAccepted    bool `json:"newAccepted"`
	ConnectMissing bool `json:"connectMissing"`
	Lapsed         bool `json:"lapsed"`
	Absent         bool `json:"absent"`
}

// LoginDependencies is the result of remove: an empty list says that the role is gone.
type LoginDependencies struct {
	List      []LoginDependency `json:"list"`
	Truncated bool              `json:"truncated"`
}

// LoginDependency is one thing that keeps a role from being removed. The words of Kind are those of role.DependencyKind.
type LoginDependency struct {
	Kind       string `json:"kind"`
	ObjectType string `json:"objectType"`
	Schema     string `json:"schema"`
	Name       string `json:"name"`
	Identity   string `json:"identity"`
}

// LoginQuestion is the body of POST /v1/logins/inspect.
type LoginQuestion struct {
	DatabaseID string `json:"databaseId"`
	Username   string `json:"username"`
	Verifier   string `json:"verifier"`
}

// LoginAnswer answers it.
type LoginAnswer struct {
	Condition string `json:"condition"`
}

// The conditions of a login. They are the words of ports.LoginCondition; the same test keeps them equal.
const (
	ConditionInForce = "in_force"
	ConditionDrifted = "drifted"
	ConditionShut    = "shut"
	ConditionAbsent  = "absent"
)
