package doctor

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/snapshot"
)

func TestExamineSnapshots(t *testing.T) {
	now := time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC)
	at := func(ago time.Duration) snapshot.Name { return snapshot.NameAt(now.Add(-ago)) }
	long := now.Add(-24 * time.Hour)
	wantCodes(t, ExamineSnapshots("one", at(time.Minute), long, now))
	wantCodes(t, ExamineSnapshots("one", at(2*time.Hour), long, now), SnapshotOld)
	wantCodes(t, ExamineSnapshots("one", "", long, now), SnapshotOld)
	wantCodes(t, ExamineSnapshots("one", "", now.Add(-time.Minute), now))
}
