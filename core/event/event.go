// Package event holds the catalogue of operation events and their payload (spec, section "Events").
package event

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Name is "<operation type>.<final status>".
type Name string

// NameOf makes the name of an event.
func NameOf(k operation.Kind, s operation.Status) Name { return Name(string(k) + "." + string(s)) }

// Payload is the body of a webhook delivery, with exactly the spec's fields. ID equals the operation ID.
type Payload struct {
	ID        id.OperationID `json:"id"`
	Event     Name           `json:"event"`
	CreatedAt string         `json:"createdAt"`
	Data      Data           `json:"data"`
}

// Data is the part of the payload that describes the operation.
type Data struct {
	OperationID  id.OperationID     `json:"operationId"`
	DatabaseID   id.DatabaseID      `json:"databaseId"`
	DatabaseName string             `json:"databaseName"`
	Status       operation.Status   `json:"status"`
	Stage        string             `json:"stage"`
	Progress     int                `json:"progress"`
	Error        *operation.Failure `json:"error"`
}

// BackupDamaged is the event of a backup that was found damaged. No operation ends with it, so it is not in the catalogue.
const BackupDamaged Name = "backup.damaged"

// OfDamage describes a backup that was found damaged, and the operation that made it. It has an ID of its own: that operation has
// had its event.
func OfDamage(own id.OperationID, b backup.Backup, databaseName string, now time.Time) Payload {
	return Payload{
		ID: own, Event: BackupDamaged, CreatedAt: now.UTC().Format(time.RFC3339Nano),
		Data: Data{
			OperationID: b.OperationID, DatabaseID: b.DatabaseID, DatabaseName: databaseName,
			Status: operation.Failed, Stage: "damaged", Progress: 100, Error: &operation.Failure{
				Code:    fault.BackupNotVerified,
				Message: "the backup " + string(b.Filename) + " was found damaged where it is stored; a new one is made",
			},
		},
	}
}

// Of describes an operation of a public kind that has just become final.
func Of(o operation.Operation, databaseName string, now time.Time) Payload {
	return Payload{
		ID: o.ID, Event: NameOf(o.Kind, o.Status), CreatedAt: now.UTC().Format(time.RFC3339Nano),
		Data: Data{
			OperationID: o.ID, DatabaseID: o.DatabaseID, DatabaseName: databaseName,
			Status: o.Status, Stage: o.Stage, Progress: o.Progress, Error: o.Failure(),
		},
	}
}
