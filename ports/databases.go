package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Databases keeps the records of databases.
type Databases interface {
	// Add stores a new record. A name that already exists on the server is VALIDATION_ERROR on "name".
	Add(ctx context.Context, r database.Record) error
	// Get returns a record, also of a deleted database; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID) (database.Record, error)
	// Tied is Get for a viewer, with what is stored between the two at the same moment. What the viewer may see of it is for
	// database.Viewer to say; use cases ask access.See.
	Tied(ctx context.Context, v database.Viewer, db id.DatabaseID) (database.Record, database.Ties, error)
	// AllTied is Tied for several databases, in any order. One that does not exist is left out.
	AllTied(ctx context.Context, v database.Viewer, list []id.DatabaseID) ([]database.Tied, error)
	// Visible lists those of the databases that the viewer sees which are in the listing, in its order. The positions of its pages
	// are those of PlaceIn.
	Visible(ctx context.Context, v database.Viewer, of database.Listing, p Page) ([]database.Listed, error)
	// Lock returns a record, also of a deleted database, and locks it until the transaction ends; ErrNoRow when there is none. Who
	// locks several does so by ID.
	Lock(ctx context.Context, db id.DatabaseID) (database.Record, error)
	// Count returns how many databases count against the account's quota. A deleted one does while it is being recovered.
	Count(ctx context.Context, account id.AccountID) (int, error)
	// Save writes every field that can change.
	Save(ctx context.Context, r database.Record) error
	// Remove deletes the record of a database that does not exist any more, or whose creation did not finish, with its logins, its
	// additional roles, all changes of both, its members, its tombstone and its idempotency keys. ErrReferenced while it has backups
	// or uploads.
	Remove(ctx context.Context, db id.DatabaseID) error
	// Pulses returns of each of the databases that exists a text that is another one after every change of what pages show of it: of
	// its record and its account's plan, its open operations and its latest one, its newest activity entries, its latest backup and
	// whether that is verified or damaged, its roles, a change of a login, members, open invitations, the lease of a preview, its
	// tombstone. When a size was read is no change, nor when backups are read again, nor the lease of an operation.
	Pulses(ctx context.Context, list []id.DatabaseID) (map[id.DatabaseID]string, error)
	// WaysBack lists up to limit records, without deleted ones, whose WayBack is a version.
	WaysBack(ctx context.Context, version, limit int) ([]database.Record, error)
	// Due lists up to limit records for which the named work is due.
	Due(ctx context.Context, what DueWork, now time.Time, limit int) ([]database.Record, error)
}

// PlaceIn is the place of a database in a listing.
func PlaceIn(of database.Listing, r database.Record) Position {
	if key := of.Key(r); key != "" {
		return Position{Key: key, ID: string(r.ID)}
	}
	return Position{At: r.CreatedAt, ID: string(r.ID)}
}

// DueWork names a kind of work that the batch host does on databases.
type DueWork string

// The kinds of work.
const (
	DueBackup    DueWork = "backup"    // NextBackupAt has passed, active or stopped, no operation open
	DueReading   DueWork = "reading"   // NextReadingAt has passed, and the database may have backups; also a deleted one
	DueAllowlist DueWork = "allowlist" // AllowlistApplied is behind AllowlistGeneration, and the database exists on its server
	// SettingsApplied is behind SettingsGeneration, and the database exists on its server; in error it may, and is closed if its
	// account is suspended.
	DueSettings DueWork = "settings"
)

// Logins keeps the encrypted passwords of the logins that were created with databases.
type Logins interface {
	Add(ctx context.Context, l LoginSecret) error
	// Get returns one login; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, login database.Login) (LoginSecret, error)
	// List returns the logins of a database, the owner first.
	List(ctx context.Context, db id.DatabaseID) ([]LoginSecret, error)
	// Replace writes generation, verifier and password of a login; ErrNoRow when there is none.
	Replace(ctx context.Context, l LoginSecret) error
}

// LoginSecret is a login and its password. Verifier is what PostgreSQL stores; Sealed is the password, encrypted and bound to
// Context.
type LoginSecret struct {
	DatabaseID id.DatabaseID  `db:"database_id"`
	Login      database.Login `db:"login"`
	Username   string         `db:"username"`
	Generation int64          `db:"generation"` // credential generation; creation makes 1
	Verifier   string         `db:"verifier"`
	Sealed     []byte         `db:"sealed"`
}

// Context binds the encrypted password to database, login and credential generation.
func (l LoginSecret) Context() string {
	return database.LoginSecretContext(l.DatabaseID, l.Login, l.Generation)
}

// BackupKeys keeps the encrypted keys of backups. A key goes with the record of its database.
type BackupKeys interface {
	Add(ctx context.Context, k backup.Key) error
	// Get returns the key of a database; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID) (backup.Key, error)
}

// Allowlist keeps allowlist entries.
type Allowlist interface {
	// List returns the entries of a database, oldest first.
	List(ctx context.Context, db id.DatabaseID) ([]database.AllowlistEntry, error)
	Add(ctx context.Context, e database.AllowlistEntry) error
	// Remove deletes an entry of this database; ErrNoRow when it has none of that ID.
	Remove(ctx context.Context, db id.DatabaseID, entry id.AllowlistEntryID) (database.AllowlistEntry, error)
}
