// Package audit holds the activity log: who did what to one database, and when. An entry never carries a secret.
package audit

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Action names what happened; past tense, resource first.
type Action string

// What is logged.
const (
	DatabaseCreated    Action = "database.created"
	DatabaseCreateFail Action = "database.create_failed"
	EnvironmentChanged Action = "database.environment_changed"
	DatabaseStarted    Action = "database.started"
	DatabaseStopped    Action = "database.stopped"
	DatabaseRestarted  Action = "database.restarted"
	AccessLost         Action = "database.access_lost"
	AccessRestored     Action = "database.access_restored"
	AllowlistAdded     Action = "allowlist.added"
	AllowlistRemoved   Action = "allowlist.removed"
	BackupRequested    Action = "backup.requested"
	BackupFinished     Action = "backup.finished"
	BackupDeleted      Action = "backup.deleted"
	BackupExpired      Action = "backup.expired"
	BackupDownloaded   Action = "backup.downloaded"
	WebhookCreated     Action = "webhook.created"
	WebhookRotated     Action = "webhook.rotated"
	WebhookDisabled    Action = "webhook.disabled"
	RoleCreated        Action = "role.created"
	RoleRenamed        Action = "role.renamed"
	RoleRevealed       Action = "role.revealed"
	RoleRotated        Action = "role.rotated"
	RoleRevoked        Action = "role.revoked"
	RoleRemoved        Action = "role.removed"
	RoleExpired        Action = "role.expired"
	ChangeEnded        Action = "login.change_ended" // without the agent's proof
	LoginRotated       Action = "login.rotated"
	LoginRevealed      Action = "login.revealed"
	OperationCanceled  Action = "operation.canceled"
	ExtensionRequested Action = "extension.requested"
	ExtensionFinished  Action = "extension.finished"
)

// Actor is who acted: "key:pgh_ABCDEFGH", "operator" or "system".
type Actor string

// The actors without a key.
const (
	Operator Actor = "operator"
	System   Actor = "system"
)

// ByKey names a key by its visible prefix.
func ByKey(prefix string) Actor { return Actor("key:" + prefix) }

// Details hold strings only, so that an entry never changes its meaning.
type Details map[string]string

// Entry is one line of the activity log.
type Entry struct {
	ID         id.AuditID
	At         time.Time
	AccountID  id.AccountID
	DatabaseID id.DatabaseID // empty for entries about no database
	Actor      Actor
	Action     Action
	Details    Details
}
