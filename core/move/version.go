package move

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/server"
)

// MayBecome decides whether a database may move to a server of a major version of PostgreSQL: its own, a newer one while no way
// back is open, or exactly the one to which its way back leads. VALIDATION_ERROR on "to".
func MayBecome(r database.Record, to int) error {
	switch {
	case to == r.PostgresVersion, to == r.WayBack, to > r.PostgresVersion && r.WayBack == 0:
		return nil
	case r.WayBack != 0:
		return fault.Invalid("to", "has PostgreSQL %d: %s came to %d from %d, and may only go back to that until the upgrade is "+
			"confirmed (database confirm-upgrade)", to, r.Name, r.PostgresVersion, r.WayBack)
	}
	return fault.Invalid("to", "has PostgreSQL %d, which is older than the %d of the database, and no way back leads there", to,
		r.PostgresVersion)
}

// Become makes a database one of the version of the server that it has come to. An upgrade opens the way back, until it is
// confirmed; whoever goes back has none any more. 0 is a version that nobody knows yet: nothing changes.
func Become(r *database.Record, version int) {
	switch {
	case version == r.PostgresVersion, version == 0:
		return
	case version > r.PostgresVersion:
		r.WayBack = r.PostgresVersion
	default:
		r.WayBack = 0
	}
	r.PostgresVersion = version
}

// mostNamed is how many databases a refusal names.
const mostNamed = 5

// KeepsWaysBack refuses to take a server out of service to whose version ways back lead, where no other one has that version and
// takes databases: VALIDATION_ERROR on "server", which names the databases and what can be done. waiting are the databases whose
// ways back lead to that version; one more than are named is enough.
func KeepsWaysBack(leaving server.Server, all []server.Server, waiting []database.Record) error {
	if len(waiting) == 0 {
		return nil
	}
	for _, s := range all {
		if s.ID != leaving.ID && s.Enabled && s.PostgresVersion == leaving.PostgresVersion {
			return nil
		}
	}
	var names []string
	for _, r := range waiting[:min(len(waiting), mostNamed)] {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, r.ID))
	}
	if len(waiting) > mostNamed {
		names = append(names, "others")
	}
	return fault.Invalid("server", "%s is the last one of PostgreSQL %d that takes databases, and the way back of %s leads there: "+
		"database move takes one back, and database confirm-upgrade ends its way back", leaving.Name, leaving.PostgresVersion,
		strings.Join(names, ", "))
}

// MostWaiting is how many databases KeepsWaysBack has to know.
const MostWaiting = mostNamed + 1
