package command

import (
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// AskStrays asks what of the service's the server has beside the databases of the agent's ledger: databases and roles by their
// mark or the shape of their name, copies, jobs, and where PgBouncer differs from what the ledger wants.
type AskStrays struct {
	Returns[Strays] `json:"-"`
}

// StraysAtOnce bounds each list of Strays.
const StraysAtOnce = 300

// Strays is what there is. Where a list is full, Cut says so.
type Strays struct {
	Databases  []StrayDatabase      `json:"databases,omitempty"`
	Roles      []StrayRole          `json:"roles,omitempty"`
	Copies     []InventoryCopy      `json:"copies,omitempty"`
	Jobs       []InventoryJob       `json:"jobs,omitempty"`
	Pooler     []PoolerDifference   `json:"pooler,omitempty"`
	Operations []InventoryOperation `json:"operations,omitempty"` // that the other lists name
	Forwards   []InventoryForward   `json:"forwards,omitempty"`
	Cut        bool                 `json:"cut,omitempty"`
}

// StrayDatabase is a database that no row of the ledger has by OID. It has the shape of a name that the agent gives, or an owner
// of the agent's.
type StrayDatabase struct {
	Name        string         `json:"name"`
	Owner       string         `json:"owner"`
	OperationID id.OperationID `json:"operationId,omitempty"` // that its name says
	// Marked says that it is the agent's by its mark, whatever its name.
	Marked bool `json:"marked"`
}

// StrayRole is a role that no row of the ledger has by OID, with a name of a shape that the agent gives.
type StrayRole struct {
	Name        string         `json:"name"`
	OperationID id.OperationID `json:"operationId,omitempty"` // that its name says
	DatabaseID  id.DatabaseID  `json:"databaseId,omitempty"`  // that its name says
	Marked      bool           `json:"marked"`
}

// InventoryCopy is a copy of a database, or what one has replaced.
type InventoryCopy struct {
	Name        string         `json:"name"`
	Purpose     string         `json:"purpose"`
	OperationID id.OperationID `json:"operationId"`
	DatabaseID  id.DatabaseID  `json:"databaseId,omitempty"`
	Wanted      bool           `json:"wanted"` // the ledger keeps it for its operation; otherwise it is dropped soon
}

// InventoryJob is a job without a result.
type InventoryJob struct {
	OperationID id.OperationID `json:"operationId"`
	Step        string         `json:"step"`
	DatabaseID  id.DatabaseID  `json:"databaseId,omitempty"`
}

// InventoryOperation is an operation as the ledger has it.
type InventoryOperation struct {
	OperationID id.OperationID `json:"operationId"`
	Epoch       int64          `json:"epoch"`
	Closed      bool           `json:"closed"`
	SilentS     int64          `json:"silentSeconds"` // since its last command
}

// InventoryForward is a database of another server to which the server sends on who comes for it here.
type InventoryForward struct {
	DatabaseID id.DatabaseID `json:"databaseId"`
	Name       string        `json:"name"`
	Host       string        `json:"host"`
	Port       int           `json:"port"`
	Until      time.Time     `json:"until"`
	// Failure says why nobody can be sent on, such as that the other server is away or does not prove that it is the one; empty: as
	// far as is known, they can.
	Failure string `json:"failure,omitempty"`
}

// PoolerDifference is something that PgBouncer's files, or PgBouncer itself, have otherwise than the ledger wants it.
type PoolerDifference struct {
	// Where is one of PoolerPlaces.
	Where string `json:"where"`
	// What is the entry, the login, the rule or the file.
	What string `json:"what"`
	// Database is that of the entry, the login or the rule; empty where it is of none that the ledger knows.
	Database string `json:"database,omitempty"`
	// Want and Has are the beginnings of what they say; empty: nothing.
	Want string `json:"want,omitempty"`
	Has  string `json:"has,omitempty"`
}

// The places of differences.
const (
	PoolerFiles = "files"
	PoolerLive  = "live"
	PoolerDown  = "down" // PgBouncer does not answer; What says why
)

// Route implements Question.
func (AskStrays) Route() Route { return Route{Method: "GET", Path: "/v1/inventory/strays"} }

// Check implements Question.
func (AskStrays) Check() error { return nil }

// AskFiles asks which files the agent's folder of backups and uploads has.
type AskFiles struct {
	Returns[FileList] `json:"-"`
	// After is the path of the last file of the part before; empty for the first part. The order is fixed.
	After string `json:"after"`
}

// FilesAtOnce bounds one part: each takes some 150 bytes.
const FilesAtOnce = 3000

// FileList is a part of the files.
type FileList struct {
	Files []StoredFile `json:"files"`
	More  bool         `json:"more"`
}

// StoredFile is a file below the folder.
type StoredFile struct {
	// Path has slashes: "<database>/<name>", "passing/<database>/<name>", "spool/<name>", or "uploads/<name>".
	Path      string `json:"path"`
	SizeBytes int64  `json:"sizeBytes"`
	AgeS      int64  `json:"ageSeconds"` // since it was last changed
}

// Route implements Question.
func (AskFiles) Route() Route { return Route{Method: "POST", Path: "/v1/inventory/files"} }

// Check implements Question.
func (q AskFiles) Check() error {
	if len(q.After) > 512 || strings.ContainsRune(q.After, 0) {
		return Refuse(ReasonInvalid, "after is no path")
	}
	return nil
}
