package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
)

// CreatePreview asks for the preview of a ref, such as a branch. Previews are for synthetic test data only, unless the operator
// allows copies: then a full-account key, and no preview CI key, can have a preview made with what another database held at a
// moment. It names all of the last three fields, and a preview CI key none of them.
type CreatePreview struct {
	Ref             string             `json:"ref" description:"1-200 characters" example:"refs/pull/17"`
	TTLHours        *int               `json:"ttlHours,omitzero" description:"1-72; default 24" example:"24"`
	ScheduledBackup *database.Schedule `json:"scheduledBackup,omitzero" description:"default none"`
	Source          *id.DatabaseID     `json:"source,omitzero" description:"the database whose data it has"`
	PointInTime     *string            `json:"pointInTime,omitzero" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	NamespaceID     *id.NamespaceID    `json:"namespaceId,omitzero" description:"the CI namespace that the ref is of"`
}

// Preview is a preview database without what is needed to connect to it.
type Preview struct {
	DatabaseID       id.DatabaseID     `json:"databaseId"`
	NamespaceID      id.NamespaceID    `json:"namespaceId"`
	Ref              string            `json:"ref" example:"refs/pull/17"`
	LeaseStatus      preview.Lease     `json:"leaseStatus"`
	LeaseGeneration  int64             `json:"leaseGeneration" description:"grows with every renewal and recovery" example:"1"`
	ExpiresAt        time.Time         `json:"expiresAt"`
	ScheduledBackup  database.Schedule `json:"scheduledBackup"`
	RecoveryDeadline *time.Time        `json:"recoveryDeadline" description:"null until it is deleted"`
	Source           *id.DatabaseID    `json:"source,omitzero" description:"the database whose data it had at first"`
	PointInTime      *time.Time        `json:"pointInTime,omitzero" description:"as of when"`
}

// PreviewConnection is how to connect to a preview. A repeated request gets neither password nor connection string once the
// owner's password has changed.
type PreviewConnection struct {
	Host             string `json:"host" example:"db1.example.com"`
	Port             int    `json:"port" example:"6432"`
	Database         string `json:"database" example:"preview-abc"`
	Username         string `json:"username" example:"preview-abc"`
	Password         string `json:"password,omitzero" example:"gK3vT9wQ2mZx7bLr"`
	ConnectionString string `json:"connectionString,omitzero" example:"postgresql://p:secret@db1.example.com:6432/p"`
}

// CreatedPreview is a preview and how to connect to it.
type CreatedPreview struct {
	Data       Preview           `json:"data"`
	Connection PreviewConnection `json:"connection"`
	// Operation makes a preview with the data of a database, which belongs to that database.
	Operation *Operation `json:"operation,omitzero" description:"while it is being made"`
}

// ExtendPreview renews a lease.
type ExtendPreview struct {
	TTLHours int `json:"ttlHours" description:"1-72, from now on" example:"24"`
}
