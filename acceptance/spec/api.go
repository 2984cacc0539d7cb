package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// API is the service as a client with one key sees it. A request that the service refuses returns a *Refusal; any other error
// means that there was no answer that a client could make sense of.
type API interface {
	DatabaseAPI
	AllowlistAPI
	BackupAPI
	OperationAPI
	WebhookAPI
	RoleAPI
	RoleChangeAPI
	LoginAPI
	// Activity is the activity log of a database, newest first.
	Activity(database string, p Page) (Listed[Activity], error)
}

// DatabaseAPI makes and manages databases.
type DatabaseAPI interface {
	Databases(p Page) (Listed[Database], error)
	CreateDatabase(n NewDatabase) (Created, error)
	Database(id string) (Database, error)
	SetEnvironment(id string, label *string) (changed *string, err error)
	SetLifecycle(id, action string) (status string, err error)
}

// AllowlistAPI says who may connect.
type AllowlistAPI interface {
	Allowlist(database string) ([]Entry, error)
	AddToAllowlist(database, cidr, description string) (Entry, error)
	RemoveFromAllowlist(database, entry string) error
}

// BackupAPI takes backups and hands them out.
type BackupAPI interface {
	Backups(database string, p Page) (Listed[Backup], error)
	StartBackup(database string) (Operation, error)
	DownloadBackup(database, filename string) ([]byte, error)
	DeleteBackup(database, filename string) error
}

// OperationAPI follows and cancels work.
type OperationAPI interface {
	Operations(database string, p Page) (Listed[Operation], error)
	Operation(id string) (Operation, error)
	CancelOperation(id string) (Operation, error)
}

// Page asks for a part of a list; the zero value asks for all of it.
type Page struct {
	Limit  int
	Cursor string
}

// Listed is a list or a page of it.
type Listed[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// NewDatabase asks for a database. Empty fields are not sent.
type NewDatabase struct {
	Name            string `json:"name"`
	DisplayName     string `json:"displayName"`
	RoleModel       string `json:"roleModel,omitempty"`
	Environment     string `json:"environment,omitempty"`
	ScheduledBackup string `json:"scheduledBackup,omitempty"`
	IdempotencyKey  string `json:"-"`
}

// Database is a database record.
type Database struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	DisplayName string    `json:"displayName"`
	Host        string    `json:"host"`
	Port        int       `json:"port"`
	Database    string    `json:"database"`
	Username    string    `json:"username"`
	Status      string    `json:"status"`
	SizeBytes   int64     `json:"sizeBytes"`
	CreatedAt   time.Time `json:"createdAt"`
	Environment *string   `json:"environment"`
}

// Created is a new database with what only its creation tells.
type Created struct {
	Database
	Password         string `json:"password"`
	ConnectionString string `json:"connectionString"`
}

// Login is how the owner of the database logs in.
func (c Created) Login() Login {
	return Login{Database: c.Database.Database, Username: c.Username, Password: c.Password, From: Home}
}

// Entry is one network of an allowlist.
type Entry struct {
	ID          string    `json:"id"`
	CIDR        string    `json:"cidr"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"createdAt"`
}

// Operation is asynchronous work.
type Operation struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Status     string          `json:"status"`
	Stage      string          `json:"stage"`
	Progress   int             `json:"progress"`
	Result     json.RawMessage `json:"result"`
	Error      *Failure        `json:"error"`
	DatabaseID string          `json:"databaseId"`
	CreatedAt  time.Time       `json:"createdAt"`
	StartedAt  *time.Time      `json:"startedAt"`
	FinishedAt *time.Time      `json:"finishedAt"`
}

// Failure is why an operation failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Final reports whether the operation will not change any more.
func (o Operation) Final() bool { return o.Status != "queued" && o.Status != "running" }

// BackupResult is the result of a backup operation.
type BackupResult struct {
	Filename       string     `json:"filename"`
	SizeBytes      int64      `json:"sizeBytes"`
	ChecksumSHA256 string     `json:"checksumSha256"`
	VerifiedAt     *time.Time `json:"verifiedAt"`
}

// Backup is a backup file.
type Backup struct {
	Filename       string     `json:"filename"`
	OperationID    string     `json:"operationId"`
	Trigger        string     `json:"trigger"`
	Format         string     `json:"format"`
	SizeBytes      int64      `json:"sizeBytes"`
	ChecksumSHA256 string     `json:"checksumSha256"`
	CreatedAt      time.Time  `json:"createdAt"`
	VerifiedAt     *time.Time `json:"verifiedAt"`
	ExpiresAt      *time.Time `json:"expiresAt"`
	RoleManifest   bool       `json:"roleManifest"`
}

// Activity is one entry of an activity log.
type Activity struct {
	ID      string            `json:"id"`
	At      time.Time         `json:"at"`
	Actor   string            `json:"actor"`
	Action  string            `json:"action"`
	Details map[string]string `json:"details"`
}

// Refusal is an error of the API. Fields names the fields of the request that are wrong.
type Refusal struct {
	Code       string
	Message    string
	Fields     []string
	RetryAfter time.Duration
	Hints
}

func (r *Refusal) Error() string {
	if len(r.Fields) > 0 {
		return fmt.Sprintf("%s (%s): %s", r.Code, strings.Join(r.Fields, ", "), r.Message)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}
