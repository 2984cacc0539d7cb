package doctor

import (
	"time"

	"github.com/pgherd/pgherd/core/snapshot"
)

// ExamineSnapshots looks at the newest snapshot of the metadata that a server has which is to keep some; empty where it has none.
// added is when the server was.
func ExamineSnapshots(server string, newest snapshot.Name, added, now time.Time) []Finding {
	if !snapshot.Old(newest.At(), added, now) {
		return nil
	}
	return []Finding{{Code: SnapshotOld, Subject: server, Has: string(newest)}}
}
