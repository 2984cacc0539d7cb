package extension

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Qualification is the last trial of an extension on a server: a backup of a database that uses it was restored and compared.
type Qualification struct {
	ServerID      id.ServerID `db:"server_id"`
	Extension     Name        `db:"extension"`
	Version       string      `db:"version"`        // that was tried
	ServerVersion string      `db:"server_version"` // of PostgreSQL
	Qualified     bool        `db:"qualified"`
	Message       string      `db:"message"` // what went wrong, for the operator; empty where it is qualified
	At            time.Time   `db:"at"`
}

// holds reports whether the trial proves a version on what the server now is. A new version of either needs a new trial.
func (q Qualification) holds(of Name, version, serverVersion string) bool {
	return q.Qualified && q.Extension == of && q.Version == version && q.ServerVersion == serverVersion
}

// Proven reports whether one of a server's trials proves a version of an extension on what the server now is.
func Proven(trials []Qualification, of Name, version, serverVersion string) bool {
	return version != "" && slices.ContainsFunc(trials, func(q Qualification) bool { return q.holds(of, version, serverVersion) })
}

// Trials are the trials of a server, one for each extension of the catalog, in its order. One that never was has no time.
func Trials(of id.ServerID, stored []Qualification) []Qualification {
	all := make([]Qualification, len(Names))
	for i, name := range Names {
		all[i] = Qualification{ServerID: of, Extension: name}
		if at := slices.IndexFunc(stored, func(q Qualification) bool { return q.Extension == name }); at >= 0 {
			all[i] = stored[at]
		}
	}
	return all
}
