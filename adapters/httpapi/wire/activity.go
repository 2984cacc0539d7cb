package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
)

// Activity is one entry of a database's activity log. Person is whose key it was, and null for the operator and the service.
type Activity struct {
	ID      id.AuditID    `json:"id"`
	At      time.Time     `json:"at"`
	Actor   string        `json:"actor" example:"key:pgh_4kTz81Qa"`
	Person  *Person       `json:"person"`
	Action  audit.Action  `json:"action" example:"database.created"`
	Details audit.Details `json:"details"`
}

// Person is a user as those who share a database see each other. The owner's list of members has the mail address, too.
type Person struct {
	UserID id.UserID `json:"userId"`
	Name   string    `json:"name" example:"Ada Lovelace"`
}
