package command

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// AskInventory asks what the agent's ledger, PostgreSQL and the pooler's gates have of the databases that the ledger knows. The
// answer carries facts: what of them is as it should be, only who knows the metadata can say.
type AskInventory struct {
	Returns[Inventory] `json:"-"`
	// After is the last database of the part before, or InventoryFromStart. The order is that of the IDs.
	After id.DatabaseID `json:"-" path:"after"`
}

// InventoryFromStart asks for the first part.
const InventoryFromStart = AppliedFromStart

// InventoryAtOnce bounds one part. A database takes some 3 KB, and one with many additional roles some 12: with a few of these a
// part is still well below the most that is read of an answer.
const InventoryAtOnce = 40

// Inventory is a part of the server's databases.
type Inventory struct {
	Databases []InventoryDatabase `json:"databases"`
	More      bool                `json:"more"` // there is another part, after the last one's
}

// InventoryDatabase is a database of the ledger.
type InventoryDatabase struct {
	DatabaseID    id.DatabaseID      `json:"databaseId"`
	Name          string             `json:"name"`
	RoleModel     database.RoleModel `json:"roleModel"`
	ConnectionCap int                `json:"connectionCap"`
	MadeBy        id.OperationID     `json:"madeBy"`
	AccountID     id.AccountID       `json:"accountId,omitempty"` // empty where nobody has said it
	Made          bool               `json:"made"`                // it has its name
	BackupKeyMark string             `json:"backupKeyMark"`       // the SHA-256 of the key of its backups, in lower-case hex
	// Isolated is its name while it is out of service; empty: it is in service.
	Isolated string         `json:"isolated,omitempty"`
	Open     bool           `json:"open"`   // as the last SetAccess wants it
	Closed   bool           `json:"closed"` // Configure keeps customers out
	Networks []netip.Prefix `json:"networks,omitempty"`
	Timeouts *Timeouts      `json:"timeouts,omitempty"`
	ReadOnly bool           `json:"readOnly"`
	// Actual is what PostgreSQL has under the OID that the ledger knows; nil: nothing.
	Actual *ActualDatabase `json:"actual,omitempty"`
	Roles  []InventoryRole `json:"roles"`
}

// ActualDatabase is a database as PostgreSQL has it.
type ActualDatabase struct {
	Name             string `json:"name"`
	Owner            string `json:"owner"`
	ConnectionLimit  int    `json:"connectionLimit"` // -1: none
	AllowConnections bool   `json:"allowConnections"`
	// PublicRights are what everybody may do with it by its owner's grant, and LoginRights what the owner login may do and pass
	// on by that, both in lower case and sorted. What logins grant is left out: it is theirs.
	PublicRights []string `json:"publicRights,omitempty"`
	LoginRights  []string `json:"loginRights,omitempty"`
	// Settings are those of the service's parameters that are set for everybody in it.
	Settings map[string]string `json:"settings,omitempty"`
}

// InventoryRole is a role that the ledger has for a database.
type InventoryRole struct {
	Name  string `json:"name"`
	Part  string `json:"part"`           // one of RoleParts
	Limit int    `json:"limit"`          // in the pooler; 0: none of its own
	Gate  string `json:"gate,omitempty"` // of a login: open or closed; empty: it has none
	// CredentialGeneration is that of the last rotation; 0: none yet.
	CredentialGeneration int64 `json:"credentialGeneration,omitempty"`
	// Enabled says that the login may log in while its database is open.
	Enabled bool `json:"enabled"`
	// Actual is what PostgreSQL has under name and OID of the ledger; nil: nothing, or another role.
	Actual *ActualRole `json:"actual,omitempty"`
}

// The parts that roles have in a database.
const (
	PartOwner, PartRuntime, PartReadonly = string(database.OwnerLogin), string(database.RuntimeLogin), string(database.ReadonlyLogin)
	PartAdditional                       = "additional"
	PartHolder                           = "holder"
	PartReadGroup, PartWriteGroup        = "read_group", "write_group"
)

// The states of a gate.
const (
	GateOpen   = "open"
	GateClosed = "closed"
)

// ActualRole is a role as PostgreSQL has it.
type ActualRole struct {
	MayLogIn bool `json:"mayLogIn"`
	// Powers are attributes that no role of a database has: superuser, createdb, createrole, replication, bypassrls, noinherit.
	Powers          []string   `json:"powers,omitempty"`
	ConnectionLimit int        `json:"connectionLimit"` // -1: none
	ValidUntil      *time.Time `json:"validUntil,omitempty"`
	// VerifierMark is the SHA-256 of the verifier of a login that has a gate, in lower-case hex; empty: it has none.
	VerifierMark string `json:"verifierMark,omitempty"`
	// MemberOf are the roles that it is a member of, and Members its members without the agent's own login.
	MemberOf []Membership `json:"memberOf,omitempty"`
	Members  []string     `json:"members,omitempty"`
}

// Membership is in a role.
type Membership struct {
	Role    string `json:"role"`
	Inherit bool   `json:"inherit"`
	Set     bool   `json:"set"`
	Admin   bool   `json:"admin"`
}

// Route implements Question.
func (AskInventory) Route() Route {
	return Route{Method: "GET", Path: "/v1/inventory/databases/{after}"}
}

// Check implements Question.
func (q AskInventory) Check() error {
	if q.After == InventoryFromStart {
		return nil
	}
	return checkDatabase(q.After)
}
