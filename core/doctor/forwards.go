package doctor

import (
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
)

// Forward is what the metadata say of a database for which a server sends on who still comes.
type Forward struct {
	move.Forward
	Name string
	// Passing says that this is changing: work is under way on the database, or it is deleted, or is the server's again.
	Passing bool
}

// ExamineForwards says where a server sends on others than the metadata have it, and whom it cannot. A database that comes back
// is busy, and sent on until the end.
func ExamineForwards(has command.Strays, want []Forward, beside Around, now time.Time) (found []Finding) {
	told, listed := map[id.DatabaseID]bool{}, map[id.DatabaseID]bool{}
	for _, f := range want {
		told[f.DatabaseID] = true
	}
	for _, f := range has.Forwards {
		listed[f.DatabaseID] = true
		switch {
		case !told[f.DatabaseID] && !beside.Busy[f.Name]:
			found = append(found, Finding{
				Code: ForwardUnknown, DatabaseID: f.DatabaseID, Subject: f.Name,
				Has: fmt.Sprintf("to %s:%d until %s", f.Host, f.Port, f.Until.UTC().Format(time.RFC3339)),
			})
		case told[f.DatabaseID] && f.Failure != "":
			found = append(found, Finding{Code: ForwardFails, DatabaseID: f.DatabaseID, Subject: f.Name, Has: f.Failure})
		}
	}
	for _, f := range want {
		if !listed[f.DatabaseID] && !has.Cut && !f.Passing && !f.Over(now) {
			found = append(found, Finding{Code: ForwardMissing, DatabaseID: f.DatabaseID, Subject: f.Name})
		}
	}
	return found
}
