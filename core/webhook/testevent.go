package webhook

import (
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// TestEvent is the event that a user sends to one endpoint to try it out. No operation emits it, so it is not in the catalogue.
const TestEvent event.Name = "webhook.test"

// noDatabase is used as the database of a test event to an endpoint for all databases.
const noDatabase id.DatabaseID = "00000000-0000-0000-0000-000000000000"

// TestPayload is the payload of a test event. It has the same fields and types as every other payload, so that a strict
// receiver can read it. Its operation ID belongs to no operation.
func TestPayload(e Endpoint, eventID id.OperationID, now time.Time) event.Payload {
	db := noDatabase
	if e.DatabaseID != nil {
		db = *e.DatabaseID
	}
	return event.Payload{
		ID: eventID, Event: TestEvent, CreatedAt: now.UTC().Format(time.RFC3339Nano),
		Data: event.Data{
			OperationID: eventID, DatabaseID: db, DatabaseName: "webhook-test",
			Status: operation.Succeeded, Stage: "webhook_test", Progress: 100,
		},
	}
}
