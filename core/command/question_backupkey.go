package command

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// AskBackupKey asks for the key that encrypts the backups of a database, for a record that is made of it. The agent tells it to
// whoever has its secret, as it tells everything else; nobody writes the answer down. ReasonNotFound: the agent's ledger does not
// have the database.
type AskBackupKey struct {
	Returns[BackupKey] `json:"-"`
	DatabaseID         id.DatabaseID `json:"-" path:"id"`
}

// BackupKey is a key, of backup.KeyBytes.
type BackupKey struct {
	Key []byte `json:"key"`
}

// String keeps the key out of logs.
func (BackupKey) String() string { return "a key of backups" }

// GoString keeps it out of them, too.
func (k BackupKey) GoString() string { return k.String() }

// Whole reports whether it is a key at all.
func (k BackupKey) Whole() bool { return len(k.Key) == backup.KeyBytes }

// Route implements Question.
func (AskBackupKey) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/backup-key"} }

// Check implements Question.
func (q AskBackupKey) Check() error { return checkDatabase(q.DatabaseID) }
