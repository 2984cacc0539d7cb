package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/drill"
	"github.com/pgherd/pgherd/core/controlplane/drills"
)

// drillFlow has a second of a database be proven: whoever dies over it, there is one drill, and it proves that.
type drillFlow struct {
	user *user
	db   wire.CreatedDatabase
	at   time.Time
}

func (f *drillFlow) ready(t *testing.T, w *world) {
	f.user = w.newUser(t, 5)
	f.db = f.user.create(t, w.api, newName("drilled"))
	eventually(t, "a window", func() (bool, string) {
		window, err := f.user.at(w.api).Recovery.GetWindow(soon(t), f.db.ID)
		return err == nil && window.From != nil && window.From.Before(time.Now().Add(-time.Second)), fmt.Sprint(window, err)
	})
	f.at = time.Now().UTC().Truncate(time.Microsecond)
}

func (f *drillFlow) act(t *testing.T, w *world, _ *stack.Host) {
	eventually(t, "a drill is ordered", func() (bool, string) {
		_, err := w.Admin(soon(t), "drill", "run", "--database", string(f.db.ID), "--at", f.at.Format(time.RFC3339Nano))
		return err == nil, fmt.Sprint(err) // while one of chance goes on
	})
}

func (f *drillFlow) check(t *testing.T, w *world, api *stack.Host) {
	eventually(t, "the second is proven", func() (bool, string) {
		window, err := f.user.at(api).Recovery.GetWindow(soon(t), f.db.ID)
		last := window.LastDrill
		return err == nil && last != nil && last.Scope == wire.DrillOfDatabase && last.Outcome == "proven" &&
			last.PointInTime.Equal(f.at), fmt.Sprint(window, last, err)
	})
	var n int
	noError(t, w.meta.QueryRow("SELECT count(*) FROM drills WHERE database_id = $1", f.db.ID).Scan(&n))
	if n != 1 {
		t.Errorf("%d drills", n)
	}
}

func drilling() (cases []killing) {
	for _, p := range drills.CrashPoints {
		cases = append(cases, kill(inBatch, "drill", &drillFlow{}, p))
	}
	for _, p := range drill.CrashPoints {
		cases = append(cases, kill(inAgent, "drill", &drillFlow{}, "agent."+p))
	}
	return cases
}
