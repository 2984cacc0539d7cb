package command

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
)

// Drill has the agent have a database back as it was at a moment, beside its server, read it whole, and compare it with what the
// server's ledger knows of that moment and with a backup. Asked again under the same ID it tells how far that is, and then how it
// has ended. There is one drill at a time: ReasonCrowded while there is another one. It has no end in the agent's ledger: an
// agent that has started anew begins again, and nothing is left of what it did before. ReasonInvalid: the server keeps no
// archive. ReasonNotFound: there is no such database.
type Drill struct {
	Returns[DrillReport] `json:"-"`
	DatabaseID           id.DatabaseID `json:"-" path:"id"`
	ID                   id.DrillID    `json:"id"`
	At                   time.Time     `json:"at"`
	// Filename is the backup to compare with, and ManifestSHA256 that of its manifest as it was recorded; empty: none.
	Filename       backup.Filename `json:"filename,omitempty"`
	ManifestSHA256 string          `json:"manifestSha256,omitempty"`
}

// DrillReport is what the agent has to tell of a drill.
type DrillReport struct {
	// Stage is that of a drill that goes on; empty: it is over. See the stages of package drill.
	Stage drill.Stage `json:"stage,omitempty"`
	drill.Found
}

// Running reports whether the drill goes on.
func (r DrillReport) Running() bool { return r.Stage != "" }

// Route implements Question.
func (Drill) Route() Route { return Route{Method: "POST", Path: "/v1/databases/{id}/drill"} }

// Check implements Question.
func (q Drill) Check() error {
	if _, err := id.Parse[id.DrillID](string(q.ID)); err != nil {
		return Refuse(ReasonInvalid, "id must be a UUID")
	}
	if q.At.IsZero() {
		return Refuse(ReasonInvalid, "at is missing")
	}
	if q.Filename == "" && q.ManifestSHA256 == "" {
		return checkDatabase(q.DatabaseID)
	}
	if !sumPattern.MatchString(q.ManifestSHA256) {
		return Refuse(ReasonInvalid, "manifestSha256 must be 64 digits of lower-case hex")
	}
	return checkFile(q.DatabaseID, q.Filename)
}
