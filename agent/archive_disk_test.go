//go:build linux

package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/health"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// WAL that cannot be stored never fills the disk: segments are let go of, whoever writes goes on, windows have a gap, and a new
// copy ends it once the store is back.
func TestAFullDiskStopsNobody(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	if !onSmallDisk(t, x.Stack, "400m") {
		t.Log("no small file system could be mounted")
		return
	}
	x.Config.ChecksEvery = 100 * time.Millisecond
	a, _, _ := x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	after := time.Now()
	check.Eventually(t, "the moment is not stored", func() bool {
		time.Sleep(2 * time.Second) // a gap is said to begin a second early, and the disk is not to be full of these
		x.write(t)
		return x.Window(t, x.of).Window.To.After(after.Add(2 * time.Second))
	})
	began, first := x.One(t, "SELECT pg_postmaster_start_time()"), x.copied(a)

	comesBack := storeGoesAway(t, x.Stack)
	for range 60 { // of 16 MiB each: more than twice the disk
		x.write(t)
		time.Sleep(300 * time.Millisecond)
		// PostgreSQL hands over one segment after another, on a busy machine more slowly than this test writes.
		check.Eventually(t, "nothing is let go of", func() bool { return a.Figures().Archive.Waiting < 300<<20 })
	}
	check.Eventually(t, "nothing is let go of", func() bool {
		s := a.Figures().Archive
		return s.Dropped > 0 && s.Waiting <= s.Free
	})
	reported(t, x.Stack, health.ArchiveFailing, health.Degraded)
	check.Must(x.Owner(t, x.of).Exec("INSERT INTO things (name) VALUES ('meanwhile')"))(t)
	lost := time.Now()

	comesBack()
	x.write(t)
	check.Eventually(t, "the server is not copied again", func() bool { return x.copied(a).After(first) })
	wellAgain(t, x.Stack)
	w := x.Window(t, x.of).Window
	if len(w.Gaps) != 1 || w.Gaps[0].Reason != recovery.SegmentsMissing || w.Gaps[0].To.Before(lost) || w.To.Before(w.Gaps[0].To) ||
		w.Gaps[0].From.Before(w.From) {
		t.Errorf("the window is %+v, and until %s segments were let go of", w, lost)
	}
	if now := x.One(t, "SELECT pg_postmaster_start_time()"); now != began {
		t.Errorf("PostgreSQL has started again: %s, %s", began, now)
	}
	x.hadBack(t, agenttest.NewUUID()) // of a moment before the gap
}

// onSmallDisk gives a server's WAL a file system of its own, where this user may mount one.
func onSmallDisk(t *testing.T, s *agenttest.Stack, size string) bool {
	t.Helper()
	for _, set := range []string{"min_wal_size = '32MB'", "max_wal_size = '64MB'"} {
		check.Must(s.Super.Exec("ALTER SYSTEM SET " + set))(t)
	}
	wal := filepath.Join(s.One(t, "SHOW data_directory"), "pg_wal")
	check.NoError(t, s.PG.Stop(t.Context(), cluster.Fast))
	before := wal + ".before"
	check.NoError(t, os.Rename(wal, before))
	check.NoError(t, os.Mkdir(wal, 0o700))
	mounted := syscall.Mount("tmpfs", wal, "tmpfs", 0, "mode=0700,size="+size) == nil
	if mounted {
		t.Cleanup(func() {
			check.NoError(t, s.PG.Stop(context.WithoutCancel(t.Context()), cluster.Immediate))
			check.NoError(t, syscall.Unmount(wal, syscall.MNT_DETACH))
		})
	}
	check.NoError(t, os.CopyFS(wal, os.DirFS(before)))
	check.NoError(t, cluster.Own(wal))
	check.NoError(t, s.PG.Start(context.WithoutCancel(t.Context())))
	return mounted
}
