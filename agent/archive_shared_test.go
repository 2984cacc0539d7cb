package agent_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/health"
)

// An agent whose archive is to be where that of another server is says so, and changes nothing there: the other goes on. That is
// so even where the two are told apart by what they write only, as when one machine was copied from the other.
func TestTwoServersInOnePlace(t *testing.T) {
	t.Parallel()
	x, other := archived{Stack: agenttest.Archived(t)}, agenttest.Archived(t)
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	before := x.Window(t, x.of).Window

	other.Config.ChecksEvery = 100 * time.Millisecond
	other.Config.Archive.Repository = filepath.Join(x.Config.BackupDir, "archive", "repository")
	other.Started(t.Context(), t)
	other.SendArchiveKey(t)
	if said := reported(t, other, health.ArchiveFailing, health.Degraded); !strings.Contains(said, "with a different checksum") {
		t.Errorf("the other says %s", said)
	}
	check.Eventually(t, "nothing is stored any more", func() bool {
		x.write(t)
		return x.Window(t, x.of).Window.To.After(before.To)
	})
	if w := x.Window(t, x.of).Window; len(w.Gaps) != 0 || !w.From.Equal(before.From) {
		t.Errorf("the window was %+v, and is %+v", before, w)
	}
	x.hadBack(t, agenttest.NewUUID())
}
