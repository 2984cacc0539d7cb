package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Database is a database without what only its creation returns.
type Database struct {
	ID          id.DatabaseID         `json:"id"`
	Name        string                `json:"name" example:"orders"`
	DisplayName string                `json:"displayName" example:"Orders"`
	Host        string                `json:"host" description:"of the pooler" example:"db1.example.com"`
	Port        int                   `json:"port" description:"of the pooler" example:"6432"`
	Database    string                `json:"database" description:"to connect to" example:"orders"`
	Username    string                `json:"username" description:"of the owner's login" example:"orders"`
	Status      database.Status       `json:"status"`
	SizeBytes   int64                 `json:"sizeBytes" description:"latest known size" example:"8437263"`
	CreatedAt   time.Time             `json:"createdAt"`
	Environment *database.Environment `json:"environment"`
	Storage     Storage               `json:"storage"`
	// ScheduledBackup says whether the service makes daily backups.
	ScheduledBackup database.Schedule `json:"scheduledBackup"`
	PostgresVersion int               `json:"postgresVersion" description:"major version" example:"16"`
	// UpgradedFrom is the major version that it had before its last upgrade, to which it can be taken back until the upgrade is
	// confirmed. It is left out where no way back is open.
	UpgradedFrom int `json:"upgradedFrom,omitzero" example:"16"`
}

// ConfirmedUpgrade is a database without a way back to an older version.
type ConfirmedUpgrade struct {
	ID              id.DatabaseID `json:"id"`
	PostgresVersion int           `json:"postgresVersion" description:"major version" example:"18"`
}

// Storage says where a database stands with regard to the quota of its bytes. It is full, read-only by default for its logins,
// from its quota on until it is below 95 % of it, and closed above 120 %, until the operator acts.
type Storage struct {
	QuotaBytes int64                  `json:"quotaBytes" example:"21474836480"`
	Status     database.StorageStatus `json:"status" description:"full: read-only by default; closed: nobody can connect"`
}

// CreatedDatabase adds password and connection string; a repeated request has neither once the owner's password has changed.
type CreatedDatabase struct {
	Database
	Password         string `json:"password,omitzero" example:"gK3vT9wQ2mZx7bLr"`
	ConnectionString string `json:"connectionString,omitzero" example:"postgresql://orders:secret@db1.example.com:6432/orders"`
}

// CreateDatabase asks for a new database.
type CreateDatabase struct {
	Name            string                `json:"name" description:"3-50 lowercase letters, digits and hyphens" example:"orders"`
	DisplayName     string                `json:"displayName" description:"1-64 characters" example:"Orders"`
	RoleModel       *database.RoleModel   `json:"roleModel,omitzero"`
	Environment     *database.Environment `json:"environment,omitzero" nullable:"true"`
	ScheduledBackup *database.Schedule    `json:"scheduledBackup,omitzero" description:"the installation's default, usually daily"`
	// PostgresVersion is the account's default, usually 16, where it is left out.
	PostgresVersion *int `json:"postgresVersion,omitzero" description:"major version: 16, 17 or 18" example:"16"`
}

// SetBackupPolicy chooses whether the service makes daily backups of a database.
type SetBackupPolicy struct {
	ScheduledBackup database.Schedule `json:"scheduledBackup"`
}

// BackupPolicy is what was chosen.
type BackupPolicy struct {
	ID              id.DatabaseID     `json:"id"`
	ScheduledBackup database.Schedule `json:"scheduledBackup"`
}

// SetEnvironment replaces the environment label; null removes it.
type SetEnvironment struct {
	Environment *database.Environment `json:"environment"`
}

// EnvironmentChange is the environment label that a database has now.
type EnvironmentChange struct {
	ID          id.DatabaseID         `json:"id"`
	Environment *database.Environment `json:"environment"`
}

// SetLifecycle starts, stops or restarts a database.
type SetLifecycle struct {
	Action database.Event `json:"action" enum:"start,stop,restart"`
}

// LifecycleChange is the status that a database has now.
type LifecycleChange struct {
	ID     id.DatabaseID   `json:"id"`
	Status database.Status `json:"status"`
}
