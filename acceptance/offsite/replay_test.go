package offsite

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/archive"
)

// replayed has a small database back after as many segments as a copy waits for, each of which ended early, as on a server on
// which little is written.
func (w *world) replayed(t *testing.T) {
	t.Helper()
	segments := 12
	if w.measured {
		segments = archive.DefaultPlan.Segments
	}
	before := w.askedSoFar(t)
	for range segments {
		check.Must(w.clients[0].Exec("UPDATE branches SET balance = balance + 1"))(t)
		check.Must(w.Super.Exec("SELECT pg_switch_wal()"))(t)
	}
	w.drained(t, true)
	now := w.askedSoFar(t)
	t.Logf("%d segments: %d objects, %d requests that write or list, %d that read", segments, now.objects-before.objects,
		now.writing-before.writing, now.reading-before.reading)
	began := time.Now()
	fetched := w.past(t, w.small, agenttest.NewUUID(), "20260301_130000.sql.gz", w.now(t))
	took := time.Since(began)
	t.Logf("%d segments were replayed in %s, or less", segments, (took - fetched).Round(time.Millisecond))
	w.hold(t, "a small database to a given second, after many segments", took, smallWithin)
}
