// Package rehearsal holds the rules of rehearsals: before a database moves to a server of another PostgreSQL, a copy of it is
// loaded there, closed to everybody, compared, and removed. What does not work there is found before the database itself goes.
package rehearsal

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Input is the input of a rehearsal, and what is found on its way. The token by which the agents know each other is sealed
// beside it.
type Input struct {
	From id.ServerID `json:"from"`
	To   id.ServerID `json:"to"`
	// Version is the major version of PostgreSQL of the server To.
	Version int `json:"version"`
	// SizeBytes and SchemaSHA256 are those of the database when the rehearsal was ordered.
	SizeBytes    int64     `json:"sizeBytes"`
	SchemaSHA256 string    `json:"schemaSha256"`
	OrderedAt    time.Time `json:"orderedAt"`

	// Filename is that of the file that passes.
	Filename backup.Filename `json:"filename"`
	// Breaks are what was found, once the copy was compared, and Notes are what a move leaves out.
	Breaks []Break  `json:"breaks,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Result is the result of a rehearsal that has come to its end: it has succeeded also where it has found something. Notes name
// what a move leaves out.
type Result struct {
	Server          string   `json:"server"`
	PostgresVersion int      `json:"postgresVersion"`
	Breaks          []Break  `json:"breaks"`
	Notes           []string `json:"notes"`
}

// A rehearsal may take leastTime, and a second more for so many bytes of the database, which is a quarter of what dump and load
// make together at least.
const (
	leastTime      = 2 * time.Hour
	bytesPerSecond = 10 << 20 / 4
)

// Overdue says why a rehearsal has to end; nil: it may go on.
func (in Input) Overdue(now time.Time) *fault.Error {
	if most := leastTime + time.Duration(in.SizeBytes/bytesPerSecond)*time.Second; now.Sub(in.OrderedAt) > most {
		return fault.New(fault.AgentError, "the rehearsal had no end within %s; nothing is left of the copy", most)
	}
	return nil
}

// Rehearsal is the last one of a database for a major version of PostgreSQL.
type Rehearsal struct {
	DatabaseID      id.DatabaseID  `db:"database_id"`
	PostgresVersion int            `db:"postgres_version"`
	ServerID        id.ServerID    `db:"server_id"` // where it was
	OperationID     id.OperationID `db:"operation_id"`
	EndedAt         time.Time      `db:"ended_at"`
	// SchemaSHA256 tells the schema that was rehearsed from any other; see command.Movable.
	SchemaSHA256 string          `db:"schema_sha256"`
	Breaks       json.RawMessage `db:"breaks"` // a list of Break
}

// Found are the breaks that a rehearsal has found.
func (r Rehearsal) Found() (list []Break, err error) {
	if err := json.Unmarshal(r.Breaks, &list); err != nil {
		return nil, fmt.Errorf("the breaks of a rehearsal: %w", err)
	}
	return list, nil
}

// Valid is for how long a rehearsal counts.
const Valid = 7 * 24 * time.Hour

// Lacks says why a rehearsal does not permit the move of a database with a schema, which is empty where nobody has asked for it;
// empty: it does. r is nil where there is none.
func Lacks(r *Rehearsal, schemaSHA256 string, now time.Time) (string, error) {
	if r == nil {
		return "it has not been rehearsed", nil
	}
	found, err := r.Found()
	at := r.EndedAt.UTC().Format(time.DateOnly)
	switch {
	case err != nil:
		return "", err
	case now.Sub(r.EndedAt) > Valid:
		return fmt.Sprintf("its rehearsal of %s is older than %d days", at, Valid/(24*time.Hour)), nil
	case schemaSHA256 != "" && r.SchemaSHA256 != schemaSHA256:
		return fmt.Sprintf("its schema has changed since its rehearsal of %s", at), nil
	case len(found) == 1:
		return fmt.Sprintf("its rehearsal of %s has found what breaks: %s", at, found[0]), nil
	case len(found) > 1:
		return fmt.Sprintf("its rehearsal of %s has found %d things that break, such as: %s", at, len(found), found[0]), nil
	}
	return "", nil
}
