// Package database holds the record of a managed database, its names, its status machine, its environment label, its
// lifecycle and its allowlist (spec, section "Databases").
package database

import (
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

// RoleModel determines which logins the platform creates.
type RoleModel string

// The role models.
const (
	Managed     RoleModel = "managed"      // owner, runtime, readonly and two group roles
	SingleLogin RoleModel = "single_login" // the owner login alone: an "existing single-login database" of the spec
)

// Values lists the models.
func (RoleModel) Values() []RoleModel { return []RoleModel{Managed, SingleLogin} }

// Environment is a label that affects nothing; empty means none.
type Environment string

// The labels.
const (
	Production  Environment = "production"
	Staging     Environment = "staging"
	Development Environment = "development"
	Other       Environment = "other"
)

// Values lists the labels.
func (Environment) Values() []Environment {
	return []Environment{Production, Staging, Development, Other}
}

// Schedule determines whether the service makes backups regularly.
type Schedule string

// The schedules.
const (
	NoSchedule Schedule = "none"
	Daily      Schedule = "daily"
)

// Values lists the schedules.
func (Schedule) Values() []Schedule { return []Schedule{NoSchedule, Daily} }

// Record is a database as the control plane knows it. Host and Port are those of its server.
type Record struct {
	ID          id.DatabaseID `db:"id"`
	AccountID   id.AccountID  `db:"account_id"`
	ServerID    id.ServerID   `db:"server_id"`
	Name        string        `db:"name"`
	DisplayName string        `db:"display_name"`
	RoleModel   RoleModel     `db:"role_model"`
	Environment Environment   `db:"environment"`
	Schedule    Schedule      `db:"schedule"`
	Status      Status        `db:"status"`
	CreatedAt   time.Time     `db:"created_at"`

	// PostgresVersion is the major version of PostgreSQL of its server.
	PostgresVersion int `db:"postgres_version"`
	// WayBack is the older major version that it came from by its last upgrade, and may go back to until the upgrade is confirmed;
	// 0: there is none.
	WayBack int `db:"way_back"`

	// ConnectionCap bounds server connections; zero means that none was set (single-login databases).
	ConnectionCap int `db:"connection_cap"`

	SizeBytes int64      `db:"size_bytes"`
	SizedAt   *time.Time `db:"sized_at"` // when SizeBytes was read from the server

	// NextBackupAt is when the next scheduled backup is due; nil without a schedule.
	NextBackupAt *time.Time `db:"next_backup_at"`
	// NextReadingAt is when its backups are looked at the next time, to read one again.
	NextReadingAt time.Time `db:"next_reading_at"`
	// ScheduleSince is since when its schedule holds; nil: since its creation. No backup of the time before is missed.
	ScheduleSince *time.Time `db:"schedule_since"`

	// AccessGeneration grows with every lifecycle action; AllowlistGeneration with every allowlist change, and
	// AllowlistApplied is the generation that the server is known to enforce.
	AccessGeneration    int64 `db:"access_generation"`
	AllowlistGeneration int64 `db:"allowlist_generation"`
	AllowlistApplied    int64 `db:"allowlist_applied"`

	// RoleGeneration grows with every change of the additional roles and of the logins' passwords; RoleOrdinal is the last ordinal
	// that was assigned. RolesBarred is true for a clone of a backup that predates additional roles.
	RoleGeneration int64 `db:"role_generation"`
	RoleOrdinal    int   `db:"role_ordinal"`
	RolesBarred    bool  `db:"roles_barred"`

	Overlay

	Settings

	Host string `db:"host"`
	Port int    `db:"port"`

	// Plan and DatabaseBytes are those of its account. They decide StorageQuota.
	Plan          account.Plan `db:"account_plan"`
	DatabaseBytes *int64       `db:"account_database_bytes"`

	account.Suspension // of its account

	// NamespaceID is the CI namespace of a preview; empty for every other database.
	NamespaceID id.NamespaceID `db:"namespace_id"`
}

// IsPreview reports whether the database is a preview, which lives and ends by its lease.
func (r Record) IsPreview() bool { return r.NamespaceID != "" }

// StorageQuota is how many bytes the database may take.
func (r Record) StorageQuota() int64 { return account.DatabaseBytes(r.Plan, r.DatabaseBytes) }

// ConnectionString is the PostgreSQL URL of the session-pooled entry. It requires a verified TLS connection. An empty password is
// left out.
func (r Record) ConnectionString(username, password string) string {
	user := url.User(username)
	if password != "" {
		user = url.UserPassword(username, password)
	}
	u := url.URL{
		Scheme:   "postgresql",
		User:     user,
		Host:     net.JoinHostPort(r.Host, strconv.Itoa(r.Port)),
		Path:     "/" + r.Name,
		RawQuery: "sslmode=verify-full",
	}
	return u.String()
}
