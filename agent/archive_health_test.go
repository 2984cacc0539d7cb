package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/health"
)

// What is wrong with the archive is in the health report until it is mended: it has no key, it cannot store, or lacks a segment.
func TestHealthSaysWhatIsWrongWithTheArchive(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	s := x.Stack
	s.Config.ChecksEvery = 100 * time.Millisecond
	a, _, _ := s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	if said := reported(t, s, health.ArchiveNotReady, health.Degraded); !strings.Contains(said, "key") {
		t.Errorf("it says %s", said)
	}
	s.SendArchiveKey(t)
	copied := func() time.Time { return x.copied(a) }
	check.Eventually(t, "the server is not copied", func() bool { return !copied().IsZero() })
	wellAgain(t, s)

	write := func() string {
		t.Helper()
		check.Must(s.Super.Exec("SELECT pg_create_restore_point('written')"))(t)
		return s.One(t, "SELECT pg_walfile_name(pg_switch_wal())")
	}
	wal := filepath.Join(s.One(t, "SHOW data_directory"), "pg_wal")
	for _, lost := range []bool{false, true} {
		before := copied()
		comesBack := storeGoesAway(t, s)
		write()
		said := reported(t, s, health.ArchiveFailing, health.Degraded)
		if !strings.Contains(said, " MiB wait") || !strings.Contains(said, "are free") {
			t.Errorf("it says %s", said)
		}
		if lost { // PostgreSQL passes over one that is not there
			waiting := check.Must(filepath.Glob(filepath.Join(wal, "archive_status", "*.ready")))(t) // ascending
			segment := strings.TrimSuffix(filepath.Base(waiting[0]), ".ready")
			check.NoError(t, os.Remove(filepath.Join(wal, segment)))
			write()
			check.Eventually(t, "the segment is waited for", func() bool {
				_, err := os.Stat(filepath.Join(wal, "archive_status", segment+".ready"))
				return errors.Is(err, os.ErrNotExist)
			})
		}
		comesBack()
		write()
		if lost {
			reported(t, s, health.ArchiveGap, health.Degraded)
			check.Eventually(t, "the server is not copied again", func() bool { return copied().After(before) })
		}
		wellAgain(t, s)
	}
}
