package offsite

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/proc"
)

// idle says what an archive takes of a server on which nobody does anything.
func (w *world) idle(t *testing.T) {
	t.Helper()
	before, own, programs := w.askedSoFar(t), w.computed(t, false), w.computed(t, true)
	time.Sleep(w.long)
	spent := w.computed(t, true) - programs
	t.Logf("idle, the whole agent: %.2f %% of a core", 100*float64(w.computed(t, false)-own)/float64(w.long))
	w.holdShare(t, "idle, the archive's programs, of a core", float64(spent)/float64(w.long), idleShare)
	w.sayDay(t, "idle", before)
}

// computed is the processor time of the agent or, where programs is true, of all programs that it has run and that have ended.
func (w *world) computed(t *testing.T, programs bool) time.Duration {
	t.Helper()
	own, ended, err := proc.Time(w.agent.Cmd.Process.Pid)
	check.NoError(t, err)
	if programs {
		return ended
	}
	return own
}
