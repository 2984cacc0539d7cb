package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Figures are for the metrics of a host: no use case depends on them.
type Figures interface {
	// OpenOperations lists what is queued or running.
	OpenOperations(ctx context.Context) ([]OperationTally, error)
	// PendingChanges counts the unfinished changes of logins.
	PendingChanges(ctx context.Context) (Tally, error)
	// PreviewLeases counts the leases that end by soon, and those that are over.
	PreviewLeases(ctx context.Context, now, soon time.Time) (LeaseTally, error)
	// OverdueBackups counts, for every server, the databases whose daily backup was due before late and is not queued; the oldest
	// may be due since then.
	OverdueBackups(ctx context.Context, now, late time.Time) ([]ServerTally, error)
	// BackupAges is when, for each server, the last verified backup was made of the database with daily backups that is worst off.
	// In accounts whose backups are not verified, any counts. A database counts from when its daily backups were switched on, at its
	// creation or later, where it has had none since; also one that cannot be backed up, but none that is deleted or being deleted.
	BackupAges(ctx context.Context, unverifiedPlans []string) ([]ServerTally, error)
	// DueDeliveries counts webhook deliveries whose next attempt could have begun; the oldest by when that was.
	DueDeliveries(ctx context.Context, now time.Time) (Tally, error)
	// WaitingEvents counts events of which no deliveries were made yet.
	WaitingEvents(ctx context.Context) (Tally, error)
	// DueMails counts mails whose next attempt could have begun.
	DueMails(ctx context.Context, now time.Time) (Tally, error)
	// DatabasesInError counts, for every server, the databases in status error.
	DatabasesInError(ctx context.Context) ([]ServerTally, error)
	// OverQuota counts the databases that are read-only by default, and those that are closed, for the quota of their bytes.
	OverQuota(ctx context.Context) (QuotaTally, error)
	// DatabaseBytes adds up the sizes of all databases, as stored.
	DatabaseBytes(ctx context.Context) (int64, error)
	// Accounts says what those accounts hold that hold most, in bytes of databases; at most so many.
	Accounts(ctx context.Context, most int) ([]AccountFigures, error)
	// Drills says how the archives of the servers are proven that have a plan of drills.
	Drills(ctx context.Context) ([]ServerDrills, error)
}

// Tally is how many there are of something, and since when the oldest is; nil where there is none.
type Tally struct {
	Count  int64      `db:"count"`
	Oldest *time.Time `db:"oldest"`
}

// OperationTally counts the operations of a kind and status. Due is when the first of them can be, or could have been, claimed.
type OperationTally struct {
	Kind   string     `db:"kind"`
	Status string     `db:"status"`
	Due    *time.Time `db:"due"`
	Tally
}

// ServerTally counts something of the databases of a server.
type ServerTally struct {
	Server string `db:"server"`
	Tally
}

// QuotaTally counts databases that are over their quotas.
type QuotaTally struct {
	Full   int64 `db:"full"`
	Closed int64 `db:"closed"`
}

// LeaseTally counts the leases of previews that end soon, and those that have ended and whose databases are not deleted; the
// oldest by its end.
type LeaseTally struct {
	Ending  int64      `db:"ending"`
	Overdue int64      `db:"overdue"`
	Oldest  *time.Time `db:"oldest"`
}

// AccountFigures is what an account holds. Deleted databases, which can be recovered, have backups alone.
type AccountFigures struct {
	AccountID   id.AccountID `db:"account_id"`
	Databases   int64        `db:"databases"`
	Bytes       int64        `db:"bytes"`
	BackupBytes int64        `db:"backup_bytes"`
	Operations  int64        `db:"operations"` // that are open
}
