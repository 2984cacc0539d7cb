package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
)

// Activity is one entry of a database's activity log.
type Activity struct {
	ID      id.AuditID    `json:"id" format:"uuid"`
	At      time.Time     `json:"at"`
	Actor   audit.Actor   `json:"actor"`
	Action  audit.Action  `json:"action"`
	Details audit.Details `json:"details"`
}
