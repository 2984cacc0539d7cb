// Package move holds the rules of how a database moves to another server while it serves: with the same ID, name, logins and
// roles. Its changes are followed until little is missing, and it is closed to its customer for less than a second. Where that
// cannot be, it is closed for as long as a dump and a load take.
package move

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// Kind is the kind of the operations that move databases.
const Kind operation.Kind = "move"

// Input is the input of a move, and what is decided on its way. The token by which the agents know each other is sealed beside
// it.
type Input struct {
	From id.ServerID `json:"from"`
	To   id.ServerID `json:"to"`
	// Closed moves do not follow: the database is closed from the dump to the end.
	Closed bool `json:"closed,omitempty"`
	// SizeBytes is how large the database was when the move was ordered.
	SizeBytes int64 `json:"sizeBytes"`
	// Forward is for how long the server that is left sends on who still comes; 0: not at all.
	Forward time.Duration `json:"forward,omitempty"`

	// Filename is that of the file that passes.
	Filename backup.Filename `json:"filename"`
	// Sent are the generations of what the other server was sent of the record, by the kinds of its commands.
	Sent map[string]int64 `json:"sent,omitempty"`
	// ShutAt is since when customers are kept out of a closed move, and FollowedAt since when changes are followed.
	ShutAt     *time.Time `json:"shutAt,omitempty"`
	FollowedAt *time.Time `json:"followedAt,omitempty"`
	// Parts counts how often customers could not be kept out.
	Parts int `json:"parts,omitempty"`
	// ClosedMs is for how many milliseconds the database was closed, once it serves again.
	ClosedMs int64             `json:"closedMs,omitempty"`
	Kept     []backup.Filename `json:"kept,omitempty"` // backups that could not be carried over
	Notes    []string          `json:"notes,omitempty"`
}

// Result is the result of a move that succeeded. PostgresVersion is the major version of the server that it came to. Notes name
// what did not come along.
type Result struct {
	Host               string   `json:"host"`
	Port               int      `json:"port"`
	PostgresVersion    int      `json:"postgresVersion"`
	ClosedMilliseconds int64    `json:"closedMilliseconds"`
	Notes              []string `json:"notes"`
}

// Bounds of a move.
const (
	// MostFollowing is how long changes may be followed until little is missing.
	MostFollowing = 24 * time.Hour
	// PartTime is how long each agent may take for its part while customers are kept out. Then it is undone.
	PartTime = 10 * time.Second
	// MostParts is how often one move tries to keep customers out.
	MostParts = 10
	// MostSettling is for how long backups may be carried over. Whatever is not there by then stays at the server that is left.
	MostSettling = 24 * time.Hour
	// MostTries is how often what comes after the pivot is tried at the server that is left, which may be gone.
	MostTries = 12
	// leastShut is for how long customers are kept out of a closed move at most, of however small a database.
	leastShut = time.Hour
)

// bytesPerSecond is what dump and load together make at least, by which a closed move is estimated.
const bytesPerSecond = 10 << 20

// ClosedFor estimates for how long a closed move keeps customers out of a database of a size.
func ClosedFor(sizeBytes int64) time.Duration {
	return 15*time.Second + time.Duration(sizeBytes/bytesPerSecond)*time.Second
}

// Overdue says why a move has to end before its pivot; nil: it may go on.
func (in Input) Overdue(now time.Time) *fault.Error {
	if in.ShutAt != nil {
		if most := max(leastShut, 4*ClosedFor(in.SizeBytes)); now.Sub(*in.ShutAt) > most {
			return fault.New(fault.AgentError, "the database was closed for longer than %s: it is open again where it was", most)
		}
		return nil
	}
	if in.FollowedAt != nil && now.Sub(*in.FollowedAt) > MostFollowing {
		return fault.New(fault.AgentError,
			"the other server did not catch up within %s: there is too much writing; it stays where it was", MostFollowing)
	}
	return nil
}

// SettledBy is until when backups are carried over. created is when the move was ordered.
func (in Input) SettledBy(created time.Time) time.Time {
	since := created
	if in.ShutAt != nil { // which is before the pivot by seconds, or by what a closed move takes
		since = *in.ShutAt
	}
	return since.Add(MostSettling)
}

// ServedFor notes that customers were served for so many milliseconds after they were to be kept out.
func (in *Input) ServedFor(milliseconds int64, now time.Time) {
	if in.ShutAt == nil || milliseconds <= 0 {
		return
	}
	since := in.ShutAt.Add(time.Duration(milliseconds) * time.Millisecond)
	if since.After(now) {
		since = now
	}
	in.ShutAt = &since
}

// ShutSince is since when a move that stands at a stage keeps customers out; nil: it does not.
func (in Input) ShutSince(at stage.Stage) *time.Time {
	if slices.Contains([]stage.Stage{Departing, Settling, Leaving, stage.Succeeded}, at) {
		return nil // they get in at the other server
	}
	return in.ShutAt
}

// Admits decides whether a database may be moved. DATABASE_STATE_CONFLICT: it is neither active nor stopped.
func Admits(status database.Status) error {
	if status == database.Active || status == database.Stopped {
		return nil
	}
	return fault.New(fault.DatabaseStateConflict, "its status is %s: only what is active or stopped is moved", status)
}
