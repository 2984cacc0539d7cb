package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/recovery"
)

// RecoveryWindow is as of which moments a database can be had back: every second from the first to the last, but for the gaps.
// There is none where the database server keeps no archive, where the plan has no recovery to a point in time, and where the
// archive has nothing of the database yet.
type RecoveryWindow struct {
	From      *time.Time     `json:"from" description:"the first moment; null: there is none"`
	To        *time.Time     `json:"to" description:"the last moment that is known to be stored; null: there is none"`
	Gaps      []RecoveryGap  `json:"gaps" description:"what is missing in between, the oldest first"`
	Archived  bool           `json:"archived" description:"the database server keeps an archive"`
	PlanDays  int            `json:"planDays" description:"how far back the plan reaches; 0: not at all" example:"7"`
	LastDrill *RecoveryDrill `json:"lastDrill" description:"the last proof, or try of it; null: there was none"`
	// ProvenFrom says how far back moments of the server are proven.
	ProvenFrom *time.Time `json:"provenFrom" description:"the earliest moment of the window that is proven on the server; else null"`
}

// RecoveryDrill is a drill: a moment was had back, read whole, and compared with what the service knew of it.
type RecoveryDrill struct {
	RanAt       time.Time     `json:"ranAt"`
	PointInTime time.Time     `json:"pointInTime" description:"the moment that was to be had back"`
	Outcome     drill.Outcome `json:"outcome"`
	Scope       DrillScope    `json:"scope" description:"whether it was of this database, or of another one of its server"`
	Seconds     int64         `json:"seconds" description:"how long it has taken"`
}

// DrillScope is what a drill was of.
type DrillScope string

// The scopes.
const (
	DrillOfDatabase DrillScope = "database"
	DrillOfServer   DrillScope = "server"
)

// Values lists them for the API's description.
func (DrillScope) Values() []DrillScope { return []DrillScope{DrillOfDatabase, DrillOfServer} }

// RecoveryGap is a time of which nothing can be had back: every moment after the first and before the last.
type RecoveryGap struct {
	From   time.Time       `json:"from"`
	To     time.Time       `json:"to"`
	Reason recovery.Reason `json:"reason"`
}
