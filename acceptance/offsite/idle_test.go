package offsite

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
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

// clockTicks is how many of the kernel's a second has, on all platforms that it reports such times on.
const clockTicks = 100

// computed is the processor time of the agent or, where programs is true, of all programs that it has run and that have ended.
func (w *world) computed(t *testing.T, programs bool) time.Duration {
	t.Helper()
	text := check.Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.agent.Cmd.Process.Pid)))(t)
	_, rest, _ := strings.Cut(string(text), ") ")
	var user, system, childrensUser, childrensSystem int64
	fields := strings.Fields(rest)
	_, err := fmt.Sscan(strings.Join(fields[11:15], " "), &user, &system, &childrensUser, &childrensSystem)
	check.NoError(t, err)
	if programs {
		return time.Duration(childrensUser+childrensSystem) * time.Second / clockTicks
	}
	return time.Duration(user+system) * time.Second / clockTicks
}
