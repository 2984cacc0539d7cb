// Package drill holds the rules of drills. In a drill, a second of a database is had back from the archive of its server, beside
// that server, read whole, and compared with what the service knew of it. Each server with an archive has one a day, of a random
// second of a random database.
package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// Outcome is how a drill has ended.
type Outcome string

// The outcomes.
const (
	// Proven says that the second was had back, that all of it can be read, and that it is what the service knew of it.
	Proven Outcome = "proven"
	// Failed says that it was not.
	Failed Outcome = "failed"
	// NotRun says that nobody can tell: there was no room, say, or the archive did not answer.
	NotRun Outcome = "not_run"
)

// Values lists them for the API's description.
func (Outcome) Values() []Outcome { return []Outcome{Proven, Failed, NotRun} }

// Stage is how far a drill is.
type Stage string

// The stages. Nobody depends on them.
const (
	Waiting   Stage = "waiting" // for jobs of customers, which go first, and for room
	Fetching  Stage = recovery.Fetching
	Replaying Stage = recovery.Replaying
	Comparing Stage = "comparing"
)

// UnmarshalText refuses an unknown outcome.
func (o *Outcome) UnmarshalText(text []byte) error {
	if *o = Outcome(text); *o != "" && !slices.Contains(o.Values(), *o) {
		return fmt.Errorf("%q is no outcome of a drill", text)
	}
	return nil
}

// Drill is one, with what it has found once it has ended.
type Drill struct {
	ID          id.DrillID    `db:"id"`
	ServerID    id.ServerID   `db:"server_id"`
	DatabaseID  id.DatabaseID `db:"database_id"`
	PointInTime time.Time     `db:"point_in_time"`
	// Filename is the last verified backup before; empty: there is none. ManifestSHA256 is that of its manifest.
	Filename       backup.Filename `db:"filename"`
	ManifestSHA256 string          `db:"manifest_sha256"`
	// Repeats says that it is of the database and second of one that has failed.
	Repeats bool      `db:"repeats"`
	BegunAt time.Time `db:"begun_at"`

	EndedAt *time.Time `db:"ended_at"`
	Outcome Outcome    `db:"outcome"` // empty until it has ended
	Why     string     `db:"why"`     // in one line, for an operator, why it is not proven
	// TookMs is how long it has worked, in milliseconds, and Facts is what it has found: see Found.
	TookMs int64           `db:"took_ms"`
	Facts  json.RawMessage `db:"facts"` // null until it has ended
}

// NoFacts are those of a drill that goes on.
var NoFacts = json.RawMessage("null")

// Facts are what a drill has found, as far as it came.
type Facts struct {
	Database      string `json:"database,omitempty"` // the name that it had then
	ServerVersion string `json:"serverVersion,omitempty"`
	// ReplayedTo is the last commit of the server that was replayed.
	ReplayedTo time.Time `json:"replayedTo,omitzero"`
	// Checksums says that the server has data checksums, which were checked as all was read.
	Checksums bool `json:"checksums"`
	// Canaries is how many marks of the database are in what was had back, as in the server's ledger; Canary is the last of them.
	Canaries int        `json:"canaries"`
	Canary   *Canary    `json:"canary,omitempty"`
	Backup   *Reference `json:"backup,omitempty"` // nil: there was none to compare with
	Contents Contents   `json:"contents,omitzero"`
	Took     Took       `json:"took,omitzero"`
}

// Contents are what there is in a database. Digest is that of all tables and large objects; see DigestOf.
type Contents struct {
	Tables       int    `json:"tables"`
	Unlogged     int    `json:"unlogged"` // tables of which no archive has the rows
	Rows         int64  `json:"rows"`
	LargeObjects int64  `json:"largeObjects"`
	Bytes        int64  `json:"bytes"` // of the database
	Digest       string `json:"digest"`
}

// DigestOf is the SHA-256, in lower-case hex, of a line for each table, by quoted name, and one for the large objects: its name,
// the number of rows and their digest, with blanks between them. The last has an empty name.
func DigestOf(c backup.Contents) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.Rows)) {
		fmt.Fprintf(h, "%s %d %s\n", name, c.Rows[name], c.Digests[name].Sum)
	}
	objects := ""
	if c.LargeObjectDigest != nil {
		objects = c.LargeObjectDigest.Sum
	}
	fmt.Fprintf(h, " %d %s\n", c.LargeObjects, objects)
	return hex.EncodeToString(h.Sum(nil))
}

// Reference is the last verified backup before the second, and how what was had back compares with it.
type Reference struct {
	Filename       backup.Filename `json:"filename"`
	ManifestSHA256 string          `json:"manifestSha256"`
	CreatedAt      time.Time       `json:"createdAt"`
	// Unchanged says that nothing was written between the two, as canaries tell: then nothing may differ.
	Unchanged bool `json:"unchanged"`
	// Differences is how many tables and other objects differ; Differ names the first of them.
	Differences int      `json:"differences"`
	Differ      []string `json:"differ,omitempty"`
}

// MostDiffer is how many differences are named.
const MostDiffer = 20

// Took is how long each part of a drill has taken, in milliseconds.
type Took struct {
	FetchMs   int64 `json:"fetchMs"`
	ReplayMs  int64 `json:"replayMs"`
	CompareMs int64 `json:"compareMs"`
}

// Ms is how long a drill has taken in all.
func (t Took) Ms() int64 { return t.FetchMs + t.ReplayMs + t.CompareMs }

// Found is what an agent says of a drill that has ended.
type Found struct {
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
	Facts   Facts   `json:"facts"`
}

// Ended returns a drill that has ended.
func (d Drill) Ended(now time.Time, f Found) Drill {
	d.EndedAt, d.Outcome, d.Why, d.TookMs, d.Facts = &now, f.Outcome, f.Why, f.Facts.Took.Ms(), operation.Encode(f.Facts)
	return d
}

// Seconds is how long a drill has worked, rounded up.
func (d Drill) Seconds() int64 { return (d.TookMs + 999) / 1000 }

// Found is what a drill that has ended has found.
func (d Drill) Found() (f Found, err error) {
	f.Outcome, f.Why = d.Outcome, d.Why
	return f, json.Unmarshal(d.Facts, &f.Facts)
}

// MostTime is how long a drill may go on before it is given up: an agent may have started anew in it, and begins again then.
const MostTime = 12 * time.Hour

// Overdue reports whether a drill is given up.
func (d Drill) Overdue(now time.Time) bool { return now.Sub(d.BegunAt) > MostTime }
