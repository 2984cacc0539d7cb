package settings

import (
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// Desired is everything that the service sets in a database, of whatever capability. It is composed only here: each
// capability stores its own part in the record, and every push sends all parts.
func Desired(r database.Record) command.Configure {
	return command.Configure{
		DatabaseID: r.ID,
		Timeouts:   timeouts(r.TimeoutProfile),
		ReadOnly:   r.StorageStatus == database.StorageFull || r.StorageStatus == database.StorageClosed,
		Closed:     r.StorageStatus == database.StorageClosed || r.Suspended(),
		Generation: r.SettingsGeneration,
	}
}

func timeouts(p querytimeout.Profile) *command.Timeouts {
	limits, chosen := querytimeout.Policy[p]
	if !chosen {
		return nil
	}
	return &command.Timeouts{
		StatementMs: limits.Statement.Milliseconds(), LockMs: limits.Lock.Milliseconds(),
		IdleInTransactionMs: limits.IdleInTransaction.Milliseconds(),
	}
}
