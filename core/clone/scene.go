package clone

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// Scene is everything about a source that determines whether it may be cloned.
type Scene struct {
	Source database.Record
	Open   id.OperationID // of the source; empty where no operation is open
}

// Admits decides about a clone of the source as it is now. QUERY_TIMEOUT_CLONE_REQUIRES_RECONFIGURATION: it has a profile of
// query timeouts that the clone would not have. DATABASE_STATE_CONFLICT: its status or an open operation forbids it.
func (s Scene) Admits() error {
	if err := s.calm(); err != nil {
		return err
	}
	_, err := s.Source.Status.Decide(database.Backup)
	return err
}

// AdmitsThen decides about a clone of the source as it was at a moment, which its archive has. The source may be deleted. The
// errors are those of Admits.
func (s Scene) AdmitsThen() error {
	if s.Source.Status != database.Deleted {
		return s.Admits()
	}
	return s.calm()
}

func (s Scene) calm() error {
	switch p := s.Source.TimeoutProfile; p {
	case querytimeout.NotConfigured, querytimeout.Standard:
	default:
		return fault.New(fault.QueryTimeoutCloneRequiresReconfigure, "a clone has no query timeouts, and the database has the "+
			"profile %s: choose %s for it, clone it, and then choose the profile of each", p, querytimeout.Standard)
	}
	if s.Open != "" {
		return fault.New(fault.DatabaseStateConflict, "another operation of the database is open: %s", s.Open)
	}
	return nil
}

// AdmitsFrom decides about a clone from a backup of the source; nil means that there is none of that name. BACKUP_NOT_FOUND: so
// it is, or the backup is past its retention. BACKUP_NOT_VERIFIED. The other errors are those of Admits.
func (s Scene) AdmitsFrom(b *backup.Backup, now time.Time) error {
	switch {
	case b == nil || b.Expired(now):
		return fault.New(fault.BackupNotFound, "no such backup")
	case b.VerifiedAt == nil:
		return fault.New(fault.BackupNotVerified, "the backup is not verified: it can be downloaded, and never cloned")
	}
	return s.Admits()
}
