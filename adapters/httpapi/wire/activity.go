package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
)

// Activity is one entry of a database's activity log.
type Activity struct {
	ID      id.AuditID    `json:"id"`
	At      time.Time     `json:"at"`
	Actor   audit.Actor   `json:"actor" example:"key:pgh_4kTz81Qa"`
	Action  audit.Action  `json:"action" example:"database.created"`
	Details audit.Details `json:"details"`
}
