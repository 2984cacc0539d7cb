package backup

import "github.com/pgherd/pgherd/core/id"

// KeyBytes is the length of a key.
const KeyBytes = 32

// Key encrypts the backups of one database before they leave its server. Once the database is purged, nobody has it any more.
type Key struct {
	DatabaseID id.DatabaseID `db:"database_id"`
	Sealed     []byte        `db:"sealed"`
}

// SecretContext binds the encrypted key to its database.
func (k Key) SecretContext() string { return "backup-key/" + string(k.DatabaseID) }
