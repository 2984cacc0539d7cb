package database

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Summary is what the API shows of a database: a Record without what only the service needs.
type Summary struct {
	ID              id.DatabaseID `db:"id"`
	Name            string        `db:"name"`
	DisplayName     string        `db:"display_name"`
	Environment     Environment   `db:"environment"`
	Schedule        Schedule      `db:"schedule"`
	Status          Status        `db:"status"`
	CreatedAt       time.Time     `db:"created_at"`
	SizeBytes       int64         `db:"size_bytes"`
	SizedAt         *time.Time    `db:"sized_at"`
	StorageStatus   StorageStatus `db:"storage_status"`
	PostgresVersion int           `db:"postgres_version"`
	WayBack         int           `db:"way_back"`
	QuotaBytes      int64         `db:"-"`
	Host            string        `db:"host"`
	Port            int           `db:"port"`
}

// Summary returns what is shown of the database.
func (r Record) Summary() Summary {
	return Summary{
		ID: r.ID, Name: r.Name, DisplayName: r.DisplayName, Environment: r.Environment, Schedule: r.Schedule, Status: r.Status,
		CreatedAt: r.CreatedAt, SizeBytes: r.SizeBytes, SizedAt: r.SizedAt, StorageStatus: r.StorageStatus,
		QuotaBytes: r.StorageQuota(), PostgresVersion: r.PostgresVersion, WayBack: r.WayBack, Host: r.Host, Port: r.Port,
	}
}

// SizeMaxAge is how old a size may be before a read of one database refreshes it.
const SizeMaxAge = time.Minute

// SizeIsStale reports whether the stored size should be read again.
func (s Summary) SizeIsStale(now time.Time) bool {
	return s.SizedAt == nil || now.Sub(*s.SizedAt) > SizeMaxAge
}
