package database

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// StorageEvent is what happens to a database with regard to the quota of its bytes.
type StorageEvent string

// The events. The first four are sizes that were measured.
const (
	BelowRelease StorageEvent = "below_95_%"        // of the quota
	BelowQuota   StorageEvent = "from_95_to_100_%"  // 100 % itself is at the quota
	AtQuota      StorageEvent = "from_100_to_120_%" // or to the ceiling, once an operator has opened the database
	AboveCeiling StorageEvent = "above_120_%"       // or above the ceiling
	QuotaRaised  StorageEvent = "quota_raised"      // by the operator; the size is judged by the new one at once
	StorageOpen  StorageEvent = "open"              // by the operator
	Replaced     StorageEvent = "restored"          // its place is another database's; the size of that is judged at once
)

// StorageEvents lists every event in the order of the docs.
var StorageEvents = []StorageEvent{BelowRelease, BelowQuota, AtQuota, AboveCeiling, QuotaRaised, StorageOpen, Replaced}

var (
	storageTo       = machine.To[StorageStatus]
	storageConflict = machine.Refuse[StorageStatus](fault.DatabaseStateConflict)
)

// StorageTransitions is the machine of the storage status. A closed database stays closed whatever is measured: nobody could have
// deleted anything in it. What a restore has put in its place is another matter.
var StorageTransitions = machine.Table[StorageStatus, StorageEvent]{
	StorageOK: {
		BelowRelease: storageTo(StorageOK), BelowQuota: storageTo(StorageOK), AtQuota: storageTo(StorageFull),
		AboveCeiling: storageTo(StorageClosed), QuotaRaised: storageTo(StorageOK), StorageOpen: storageConflict,
		Replaced: storageTo(StorageOK),
	},
	StorageFull: {
		BelowRelease: storageTo(StorageOK), BelowQuota: storageTo(StorageFull), AtQuota: storageTo(StorageFull),
		AboveCeiling: storageTo(StorageClosed), QuotaRaised: storageTo(StorageFull), StorageOpen: storageConflict,
		Replaced: storageTo(StorageFull),
	},
	StorageClosed: {
		BelowRelease: storageTo(StorageClosed), BelowQuota: storageTo(StorageClosed), AtQuota: storageTo(StorageClosed),
		AboveCeiling: storageTo(StorageClosed), QuotaRaised: storageTo(StorageFull), StorageOpen: storageTo(StorageFull),
		Replaced: storageTo(StorageFull),
	},
}

// The shares of the quota, in percent.
const (
	releaseShare = 95
	closeShare   = 120
	// openShare is how much a database that an operator has opened may grow until it is closed again.
	openShare = 20
)

func share(quota, percent int64) int64 { return quota/100*percent + quota%100*percent/100 }

// Storage is the state of a database with regard to the quota of its bytes. Ceiling is the size above which one that an operator
// has opened is closed again; 0: the rule's own.
type Storage struct {
	Status  StorageStatus
	Ceiling int64
}

// Storage returns the record's.
func (r Record) Storage() Storage { return Storage{r.StorageStatus, r.StorageCeiling} }

// SetStorage sets the record's.
func (r *Record) SetStorage(s Storage) { r.StorageStatus, r.StorageCeiling = s.Status, s.Ceiling }

// Measured is what follows from a size.
func (s Storage) Measured(size, quota int64) Storage {
	cell, err := StorageTransitions.Decide(s.Status, s.event(size, quota))
	if err != nil { // no status of the table
		return s
	}
	if size < quota {
		s.Ceiling = 0
	}
	s.Status = cell.Next
	return s
}

func (s Storage) event(size, quota int64) StorageEvent {
	switch {
	case size < share(quota, releaseShare):
		return BelowRelease
	case size < quota:
		return BelowQuota
	case size <= s.ClosesAbove(quota):
		return AtQuota
	}
	return AboveCeiling
}

// ClosesAbove is the size above which the database is closed.
func (s Storage) ClosesAbove(quota int64) int64 { return max(share(quota, closeShare), s.Ceiling) }

// QuotaChanged is what follows from a change of the quota. Only a raise takes a database out of closed.
func (s Storage) QuotaChanged(size, from, to int64) Storage {
	if to > from {
		if cell, err := StorageTransitions.Decide(s.Status, QuotaRaised); err == nil {
			s.Status = cell.Next
		}
	}
	return s.Measured(size, to)
}

// Restored is what follows from the size of what a restore has put in the place of the database.
func (s Storage) Restored(size, quota int64) Storage {
	if cell, err := StorageTransitions.Decide(s.Status, Replaced); err == nil {
		s.Status = cell.Next
	}
	return s.Measured(size, quota)
}

// Opened is what follows from an operator's decision to let a closed database in again, so that its customer can delete:
// DATABASE_STATE_CONFLICT where it is not closed. It is closed again only once it has grown by another fifth of its quota.
func (s Storage) Opened(size, quota int64) (Storage, error) {
	cell, err := StorageTransitions.Decide(s.Status, StorageOpen)
	if err != nil {
		return s, err
	}
	s.Status, s.Ceiling = cell.Next, max(size, share(quota, closeShare))+share(quota, openShare)
	return s.Measured(size, quota), nil
}
