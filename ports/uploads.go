package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

// Uploads keeps the records of dumps that customers have announced, from then until the server has removed the file. Who adds or
// saves one holds the lock of its database (Databases.Lock).
type Uploads interface {
	// Add stores an upload.
	Add(ctx context.Context, u upload.Upload) error
	// Get returns an upload of a database, also one that has ended; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, u id.UploadID) (upload.Upload, error)
	// OfAccount returns the uploads of all databases of an account, oldest first.
	OfAccount(ctx context.Context, account id.AccountID) ([]upload.Upload, error)
	// Save writes expiry and operation.
	Save(ctx context.Context, u upload.Upload) error
	// Remove deletes the record of a file that is gone.
	Remove(ctx context.Context, u id.UploadID) error
	// Doomed lists up to limit uploads whose files are to be removed, oldest first: those of an operation that has ended, and those
	// of none that have expired.
	Doomed(ctx context.Context, now time.Time, limit int) ([]DoomedUpload, error)
}

// DoomedUpload is an upload whose file is to be removed, the server that it is on, and the account of its database.
type DoomedUpload struct {
	upload.Upload
	ServerID  id.ServerID  `db:"server_id"`
	AccountID id.AccountID `db:"account_id"`
}
