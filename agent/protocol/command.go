package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Kind names what a command asks for.
type Kind string

const (
	EnsureDatabase Kind = "database.ensure"
	SetAccess      Kind = "database.access"
	SetAllowlist   Kind = "database.allowlist"
	RunBackup      Kind = "backup.run"
	CloseOperation Kind = "operation.close"
)

// Kinds lists the commands of this version; Capabilities answers with it.
var Kinds = []Kind{EnsureDatabase, SetAccess, SetAllowlist, EnsureLogin, RunBackup, CloseOperation}

// Command is declarative: it describes the desired state. Its identity is operation, step, resource, generation and payload
// hash; a repeated command gets the same reply. Epoch is the lease epoch of the worker that sends it: an agent refuses an epoch
// lower than the highest that it has seen for the operation. A command without an operation leaves OperationID empty and Epoch
// zero.
type Command struct {
	Kind        Kind            `json:"kind"`
	OperationID string          `json:"operationId"`
	Epoch       int64           `json:"epoch"`
	Step        string          `json:"step"`
	Resource    string          `json:"resource"` // "database/<id>"
	Generation  int64           `json:"generation"`
	PayloadHash string          `json:"payloadHash"` // lower-case hex SHA-256 of Payload as sent
	Payload     json.RawMessage `json:"payload"`
	// Secrets are kept out of Payload and of its hash. They are never stored or logged.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Hash returns the payload hash of a payload.
func Hash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Reply answers a command that was done or, for backup.run, is in progress.
type Reply struct {
	Result json.RawMessage `json:"result"`
}

// Refusal answers a command that was not done.
type Refusal struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Generations come with stale and conflict. An agent of an earlier version does not name them.
	Generations *Generations `json:"generations,omitempty"`
}

// Generations are what an agent has been told about a resource by commands of one kind. A generation is admitted before it is
// applied: what lies between the two may be in force or not.
type Generations struct {
	Applied  int64 `json:"applied"`  // the highest whose command was done
	Admitted int64 `json:"admitted"` // the highest whose command was begun
	// Credential is the generation of the login's password as last rotated; of login.ensure alone.
	Credential int64 `json:"credential,omitempty"`
}

// DatabasePayload is the payload of database.ensure. Passwords for the proof of the log-in come in Secrets, by username.
type DatabasePayload struct {
	DatabaseID    string         `json:"databaseId"`
	Name          string         `json:"name"`
	RoleModel     string         `json:"roleModel"`     // managed, single_login
	ConnectionCap int            `json:"connectionCap"` // 0: none
	Logins        []LoginPayload `json:"logins"`
}

// LoginPayload is the desired state of a login.
type LoginPayload struct {
	Login    string `json:"login"` // owner, runtime, readonly
	Username string `json:"username"`
	Verifier string `json:"verifier"` // SCRAM-SHA-256
}

// AccessPayload is the payload of database.access.
type AccessPayload struct {
	DatabaseID string `json:"databaseId"`
	Open       bool   `json:"open"`
	Disconnect bool   `json:"disconnect"`
}

// AllowlistPayload is the payload of database.allowlist. No network means that every address is admitted.
type AllowlistPayload struct {
	DatabaseID string   `json:"databaseId"`
	Networks   []string `json:"networks"`
}

// BackupPayload is the payload of backup.run. The command is repeated to follow the backup: its reply is a BackupReport.
type BackupPayload struct {
	DatabaseID string `json:"databaseId"`
	Filename   string `json:"filename"`
	Verify     bool   `json:"verify"`
}

// BackupReport is the progress or result of a backup. State and Reason have the values of ports.BackupState and
// ports.AgentReason.
type BackupReport struct {
	State          string     `json:"state"`
	Stage          string     `json:"stage"`
	Progress       int        `json:"progress"`
	Reason         string     `json:"reason,omitempty"`
	Message        string     `json:"message,omitempty"`
	SizeBytes      int64      `json:"sizeBytes,omitempty"`
	ChecksumSHA256 string     `json:"checksumSha256,omitempty"`
	VerifiedAt     *time.Time `json:"verifiedAt,omitempty"`
	RoleManifest   bool       `json:"roleManifest,omitempty"`
}

// Size answers /v1/databases/{id}/size.
type Size struct {
	Bytes int64 `json:"bytes"`
}

// Capabilities names the agent's version, its routes, the commands that it knows, and the programs that it works with.
type Capabilities struct {
	Version  string   `json:"version"`
	Routes   []string `json:"routes"`
	Commands []Kind   `json:"commands"`
	// Programs are those that the agent works with. An agent of an earlier version does not name them.
	Programs []Program `json:"programs"`
	// Connections is how many connections the customers' databases can have together: max_connections without what is kept for
	// superusers, for the agent and for PgBouncer's own questions. It is left out while PostgreSQL does not answer; an agent of an
	// earlier version never says it.
	Connections int `json:"connections,omitempty"`
}

// Program is PostgreSQL, PgBouncer or pg_dump on the agent's server.
type Program struct {
	Name string `json:"name"`
	// Version is what the program says of itself; empty until it has answered.
	Version string `json:"version"`
	// Floor is the oldest version of the same series without known holes.
	Floor string `json:"floor"`
	// BelowFloor says that the version is older than that. Holes are then the identifiers of what is known of it, and Accepted
	// says that the operator has accepted this very version.
	BelowFloor bool     `json:"belowFloor"`
	Accepted   bool     `json:"accepted"`
	Holes      []string `json:"holes"`
}
