package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Database is a database without what only its creation returns.
type Database struct {
	ID          id.DatabaseID         `json:"id" format:"uuid"`
	Name        string                `json:"name"`
	DisplayName string                `json:"displayName"`
	Host        string                `json:"host"`
	Port        int                   `json:"port"`
	Database    string                `json:"database"`
	Username    string                `json:"username"`
	Status      database.Status       `json:"status"`
	SizeBytes   int64                 `json:"sizeBytes"`
	CreatedAt   time.Time             `json:"createdAt"`
	Environment *database.Environment `json:"environment"`
}

// CreatedDatabase adds password and connection string; a repeated request has neither once the owner's password has changed.
type CreatedDatabase struct {
	Database
	Password         string `json:"password,omitzero"`
	ConnectionString string `json:"connectionString,omitzero"`
}

// CreateDatabase asks for a new database.
type CreateDatabase struct {
	Name            string                `json:"name" description:"3-50 lowercase letters, digits and hyphens"`
	DisplayName     string                `json:"displayName" description:"1-64 characters"`
	RoleModel       *database.RoleModel   `json:"roleModel,omitzero"`
	Environment     *database.Environment `json:"environment,omitzero" nullable:"true"`
	ScheduledBackup *database.Schedule    `json:"scheduledBackup,omitzero"`
}

// SetEnvironment replaces the environment label; null takes it away.
type SetEnvironment struct {
	Environment *database.Environment `json:"environment"`
}

// DatabaseEnvironment is the environment label of a database.
type DatabaseEnvironment struct {
	ID          id.DatabaseID         `json:"id" format:"uuid"`
	Environment *database.Environment `json:"environment"`
}

// SetLifecycle starts, stops or restarts a database.
type SetLifecycle struct {
	Action database.Event `json:"action" enum:"start,stop,restart"`
}

// DatabaseStatus is the status of a database.
type DatabaseStatus struct {
	ID     id.DatabaseID   `json:"id" format:"uuid"`
	Status database.Status `json:"status"`
}
