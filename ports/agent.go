package ports

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Fleet reaches the agents of the registered servers.
type Fleet interface {
	Agent(s server.Server) (Agent, error)
}

// Agent does the work on one database server. Its commands are declarative and may be repeated: the same command has the same
// outcome. Its errors tell what is known:
//
//   - *AgentRefusal: the agent has answered, and did not do it;
//   - ErrAgentUnreachable: the command was never delivered;
//   - every other error: the outcome is unknown; send the command again.
type Agent interface {
	DatabaseAgent
	RoleAgent
	BackupAgent
	// Close ends the operation's work on the server, undoes what it left unfinished, and makes the agent refuse every later
	// command of it. If the operation had already completed a database or a backup, Close is refused with ReasonCompleted: that
	// can no longer be undone. A backup that is to be verified is complete when it is.
	Close(ctx context.Context, f Fence) error
	// Ready reports whether the agent answers and PostgreSQL and PgBouncer run.
	Ready(ctx context.Context) error
	// Connections returns how many connections the databases of the server can have together. ReasonUnavailable: PostgreSQL does
	// not answer, or the agent is too old to say.
	Connections(ctx context.Context) (int, error)
}

// Fence lets an agent refuse a worker that was suspended beyond the end of its lease.
type Fence struct {
	OperationID id.OperationID
	Epoch       int64
}

// DatabaseAgent creates, opens, closes and measures databases.
type DatabaseAgent interface {
	// EnsureDatabase creates the database and its logins as specified, opens it in the pooler, and proves that the owner can log
	// in through it. ReasonNameTaken: the server has a database or login of that name that was not made by this service for this
	// database.
	EnsureDatabase(ctx context.Context, f Fence, spec DatabaseSpec) error
	// SetAccess opens or closes the customer logins of a database, and ends open connections where asked. A lower generation
	// than the highest admitted is ReasonStale, also where the same command was done before.
	SetAccess(ctx context.Context, f Fence, spec AccessSpec) error
	// SetAllowlist makes the pooler admit only the given networks (none: every address) and closes connections from
	// elsewhere. ReasonStale as for SetAccess.
	SetAllowlist(ctx context.Context, spec AllowlistSpec) error
	// SetAccounts tells whose databases are, which the agent needs to know who holds more of the server than others. Databases
	// that the server does not have are passed over. ReasonNoRoute: the agent is too old.
	SetAccounts(ctx context.Context, list []DatabaseAccount) error
	// DatabaseSize returns the size on disk in bytes.
	DatabaseSize(ctx context.Context, db id.DatabaseID) (int64, error)
}

// DatabaseSpec is the desired state of a database.
type DatabaseSpec struct {
	ID            id.DatabaseID
	Name          string
	RoleModel     database.RoleModel
	ConnectionCap int // 0: none
	Logins        []LoginSpec
}

// LoginSpec is the desired state of a login. Password is used to prove the owner's log-in; an agent never stores it.
type LoginSpec struct {
	Login    database.Login
	Username string
	Verifier string
	Password string
}

// AccessSpec is the desired state of access to a database.
type AccessSpec struct {
	DatabaseID id.DatabaseID
	Generation int64
	Open       bool
	Disconnect bool // end open connections
}

// AllowlistSpec is the desired allowlist of a database.
type AllowlistSpec struct {
	DatabaseID id.DatabaseID
	Generation int64
	Networks   []netip.Prefix
}

// DatabaseAccount says whose a database is.
type DatabaseAccount struct {
	DatabaseID id.DatabaseID `db:"id"`
	AccountID  id.AccountID  `db:"account_id"`
}

// BackupAgent creates, stores, serves and deletes backup files.
type BackupAgent interface {
	// Backup starts the backup, resumes it after a crash, or reports its progress. It returns at once.
	Backup(ctx context.Context, f Fence, spec BackupSpec) (BackupReport, error)
	// RoomForBackup refuses with ReasonStorageFull where the server has no room for another backup of the database.
	RoomForBackup(ctx context.Context, db id.DatabaseID) error
	// DeleteBackup removes a file; a missing file is no error. ReasonNoRoute: the agent is too old.
	DeleteBackup(ctx context.Context, db id.DatabaseID, filename string) error
	// OpenBackup streams a file; it does not wait for others, its caller bounds how many are open. ReasonNotFound: it does not
	// exist. ReasonNoRoute: the agent is too old.
	OpenBackup(ctx context.Context, db id.DatabaseID, filename string) (BackupFile, error)
}

// BackupSpec is a backup to be made.
type BackupSpec struct {
	DatabaseID id.DatabaseID
	Filename   string
	Verify     bool
}

// BackupState tells a running backup from a finished one.
type BackupState string

// The states of a backup.
const (
	BackupRunning     BackupState = "running"
	BackupDone        BackupState = "done"
	BackupNotVerified BackupState = "not_verified" // the file exists, but its restored copy differs
	BackupFailed      BackupState = "failed"       // there is no file
)

// BackupReport is the progress or result of a backup.
type BackupReport struct {
	State          BackupState
	Stage          string
	Progress       int
	Reason         AgentReason // of BackupFailed
	Message        string      // of BackupFailed and BackupNotVerified; fit for the customer
	SizeBytes      int64
	ChecksumSHA256 string
	VerifiedAt     *time.Time
	RoleManifest   bool
}

// BackupFile is an open backup file; its holder must close Body.
type BackupFile struct {
	Body io.ReadCloser
	Size int64
}

// AgentReason says why an agent refused.
type AgentReason string

// The reasons.
const (
	ReasonStale       AgentReason = "stale"        // a newer generation was admitted
	ReasonFenced      AgentReason = "fenced"       // the operation has a command with a higher epoch
	ReasonConflict    AgentReason = "conflict"     // the same command with another payload
	ReasonClosed      AgentReason = "closed"       // the operation is closed
	ReasonCompleted   AgentReason = "completed"    // the operation is complete and cannot be closed
	ReasonNameTaken   AgentReason = "name_taken"   // something of that name exists that this service did not make
	ReasonNotFound    AgentReason = "not_found"    // no such database or file
	ReasonStorageFull AgentReason = "storage_full" // no room for a backup
	ReasonUnavailable AgentReason = "unavailable"  // PostgreSQL or PgBouncer is down; try again
	ReasonNoRoute     AgentReason = "no_route"     // the agent does not know this command
	ReasonInvalid     AgentReason = "invalid"      // the agent cannot read the command
	ReasonFailed      AgentReason = "failed"       // a permanent failure; Message describes it

	ReasonConnectRequired AgentReason = "connect_required" // the owner has withdrawn CONNECT from the role
	ReasonDatabaseClosed  AgentReason = "database_closed"  // the database is stopped
)

// AgentRefusal is an agent's definite refusal.
type AgentRefusal struct {
	Reason  AgentReason
	Message string
	// Generations come with ReasonStale and ReasonConflict; nil: the agent is too old to name them.
	Generations *AgentGenerations
}

// AgentGenerations are what an agent has been told about a database's access or allowlist, or about a login. A generation is
// admitted before it is applied: what lies between the two may be in force or not.
type AgentGenerations struct {
	Applied, Admitted int64
	Credential        int64 // of a login's password, as last rotated
}

func (r *AgentRefusal) Error() string {
	return "agent refused (" + string(r.Reason) + "): " + r.Message
}

// ErrAgentUnreachable means that a command was never delivered.
var ErrAgentUnreachable = errors.New("the agent cannot be reached")

// RefusedFor reports whether err is a refusal for that reason.
func RefusedFor(err error, reason AgentReason) bool {
	var r *AgentRefusal
	return errors.As(err, &r) && r.Reason == reason
}
