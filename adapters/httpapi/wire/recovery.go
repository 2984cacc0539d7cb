package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/recovery"
)

// RecoveryWindow is as of which moments a database can be had back: every second from the first to the last, but for the gaps.
// There is none where the database server keeps no archive, where the plan has no recovery to a point in time, and where the
// archive has nothing of the database yet.
type RecoveryWindow struct {
	From     *time.Time    `json:"from" description:"the first moment; null: there is none"`
	To       *time.Time    `json:"to" description:"the last moment that is known to be stored; null: there is none"`
	Gaps     []RecoveryGap `json:"gaps" description:"what is missing in between, the oldest first"`
	Archived bool          `json:"archived" description:"the database server keeps an archive"`
	PlanDays int           `json:"planDays" description:"how far back the plan reaches; 0: not at all" example:"7"`
	// LastDrill is when a moment of the window was last had back, and compared.
	LastDrill *time.Time `json:"lastDrill" description:"when the window was last proven; null: never"`
}

// RecoveryGap is a time of which nothing can be had back: every moment after the first and before the last.
type RecoveryGap struct {
	From   time.Time       `json:"from"`
	To     time.Time       `json:"to"`
	Reason recovery.Reason `json:"reason"`
}
