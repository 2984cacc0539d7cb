package recovery

import (
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of operations that look at a database as it was, beside Stages.
const (
	Copying  = "copying"  // the tables of a rescue
	Counting = "counting" // the rows of a comparison's tables
	Asking   = "asking"   // the query of a search
)

// Rescue asks for tables of a database as they were at a moment, in a schema of the database as it is.
type Rescue struct {
	At     time.Time
	Tables []Table
	Key    idempotency.Key // empty: every request is another rescue
}

// RescueRoute is the route that keys of rescues belong to.
const RescueRoute = "POST /rescues"

// Fingerprint identifies what the request asks for.
func (r Rescue) Fingerprint(of id.DatabaseID) idempotency.Fingerprint {
	parts := []string{string(of), Text(r.At)}
	for _, t := range r.Tables {
		parts = append(parts, t.Schema, t.Name)
	}
	return idempotency.NewFingerprint(parts...)
}

// RescueInput is the input of a rescue operation.
type RescueInput struct {
	At     time.Time `json:"at"`
	Tables []Table   `json:"tables"`
	// MaxBytes is the quota of the database when it was asked for.
	MaxBytes int64 `json:"maxBytes"`
}

// RescueResult is the result of a rescue that succeeded. Notes name columns that are text, as the database has their types no
// more.
type RescueResult struct {
	At     time.Time `json:"pointInTime"`
	Schema string    `json:"schema"`
	Tables []Rescued `json:"tables"`
	Notes  []string  `json:"notes"`
}

// Rescued is a table that was rescued.
type Rescued struct {
	Of   string `json:"of"`   // as it was called then
	Name string `json:"name"` // in the schema of the rescue
	Rows int64  `json:"rows"`
}

// RescueSchema is the schema that a rescue makes.
func RescueSchema(at time.Time) string { return "rescue_" + at.UTC().Format("20060102_150405") }

// Scene is everything about a database that determines whether it may be looked at as it was.
type Scene struct {
	Database database.Record
	Open     id.OperationID // of the database; empty where no operation is open
}

// Admits decides over an operation that has the database back as it was beside itself. DATABASE_STATE_CONFLICT: its status or an
// open operation forbids it.
func (s Scene) Admits() error {
	if s.Open != "" {
		return fault.New(fault.DatabaseStateConflict, "another operation of the database is open: %s", s.Open)
	}
	_, err := s.Database.Status.Decide(database.Backup)
	return err
}

// Looking is the stage of an operation that has the database back as it was beside itself, in which the agent works; the
// operation shows what it is at.
const Looking stage.Stage = "looking"

// Seen is what happens to such an operation: the agent has done what it was to do there.
const Seen stage.Event = "seen"

// Machine is the machine of rescues, comparisons and searches. Up to its last transaction a rescue only reads, and the others do
// in any case; so each is canceled at any time, and only the agent has something to take back.
var Machine = stage.New(
	[]stage.Stage{stage.Queued, Looking, stage.Succeeded, stage.Failed, stage.Canceled},
	[]stage.Event{stage.Advance, stage.Cancel, Seen, stage.Refused, stage.Completed},
	Looking,
	stage.Moves{
		stage.Queued: {stage.Advance: stage.To(Looking), stage.Cancel: stage.To(stage.Canceled, stage.EmitEvent)},
		Looking: {
			Seen:          stage.To(stage.Succeeded, stage.EmitEvent),
			stage.Cancel:  stage.To(stage.Canceled, stage.CloseAtAgent, stage.EmitEvent),
			stage.Refused: stage.To(stage.Failed, stage.CloseAtAgent, stage.EmitEvent), stage.Completed: stage.To(Looking),
		},
	})

// Names are the names of tables as a person reads them.
func Names(list []Table) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}
