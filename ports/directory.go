package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

// Directory lists what there is in the whole installation, for the people who run it. A field of a filter that is empty matches
// everything.
type Directory interface {
	// Accounts lists accounts by creation time and ID.
	Accounts(ctx context.Context, of AccountFilter, p Page) ([]AccountEntry, error)
	// Databases lists databases, also deleted ones, by creation time and ID.
	Databases(ctx context.Context, of DatabaseFilter, p Page) ([]DatabaseEntry, error)
	// Backups lists the backups that are not being deleted, the newest first; the ID in their positions is their operation's.
	Backups(ctx context.Context, of BackupFilter, p Page) ([]BackupEntry, error)
	// Namespaces lists CI namespaces, also revoked ones, by creation time and ID.
	Namespaces(ctx context.Context, of NamespaceFilter, p Page) ([]NamespaceEntry, error)
	// Usage lists what the databases of one account, or of all, came to in a month, by the IDs of the databases.
	Usage(ctx context.Context, of UsageFilter, p Page) ([]UsageEntry, error)
	// Enrolled counts the databases that are enrolled for each route; a route that has none is left out.
	Enrolled(ctx context.Context) (map[string]int, error)
}

// AccountFilter chooses accounts.
type AccountFilter struct {
	ID    id.AccountID
	Plan  account.Plan
	Email string // a part of the owner's address
	// Owner is the owner's whole address or a name without an @: names that look like addresses find nobody.
	Owner string
}

// AccountEntry is an account with its owner and what it uses.
type AccountEntry struct {
	account.Account
	Email     string `db:"email"`
	Name      string `db:"name"`
	Databases int    `db:"databases"`  // that count against the quota, as Databases.Count says
	Deleted   int    `db:"deleted"`    // that are deleted and not purged
	Bytes     int64  `db:"bytes"`      // of the databases that are not deleted, as stored
	InBackups int64  `db:"in_backups"` // bytes of the backup files that count against a quota, as Storage.BackupBytes says
	Keys      int    `db:"keys"`       // that are neither revoked nor CI keys
}

// DatabaseFilter chooses databases.
type DatabaseFilter struct {
	ID        id.DatabaseID
	AccountID id.AccountID
	ServerID  id.ServerID
	Name      string
	Statuses  []database.Status
	Route     string // for which they are enrolled; rollout.All is any
}

// DatabaseEntry is a database with the names of what it belongs to.
type DatabaseEntry struct {
	database.Record
	Email      string   `db:"email"`      // of the account's owner
	Server     string   `db:"server"`     // the server's name
	InBackups  int64    `db:"in_backups"` // as Storage.BackupBytes
	Enrolments []string `db:"-"`
}

// BackupFilter chooses backups.
type BackupFilter struct {
	DatabaseID id.DatabaseID
	AccountID  id.AccountID
	Unverified bool // only those that were never verified
}

// BackupEntry is a backup with its database.
type BackupEntry struct {
	backup.Backup
	Database  string          `db:"database"` // its name
	Status    database.Status `db:"status"`
	AccountID id.AccountID    `db:"account_id"`
	Email     string          `db:"email"` // of the account's owner
	ServerID  id.ServerID     `db:"server_id"`
	Server    string          `db:"server"` // the server's name
}

// NamespaceFilter chooses CI namespaces.
type NamespaceFilter struct {
	AccountID id.AccountID
	Name      string
}

// NamespaceEntry is a CI namespace with the address of its account's owner.
type NamespaceEntry struct {
	account.Namespace
	Email string `db:"email"`
}

// UsageEntry is a line with the address of its account's owner.
type UsageEntry struct {
	usage.Line
	Email string `db:"email"`
}
