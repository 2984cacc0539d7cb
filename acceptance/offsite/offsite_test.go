// Package offsite measures what it costs to keep an archive in an object store, and how long it takes to have a database back
// from it.
package offsite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m, "TestOffsite", "TestHistories")) }

// scale is how much there is: in make test little, in make offsite what the bounds are promised for.
type scale struct{ databases, megabytes int }

func scaleOf(t *testing.T) scale {
	t.Helper()
	s := scale{3, 10}
	if text := os.Getenv("PGHERD_OFFSITE"); text != "" {
		_, err := fmt.Sscanf(text, "%dx%d", &s.databases, &s.megabytes)
		check.NoError(t, err, "PGHERD_OFFSITE is databases x megabytes")
	}
	return s
}

func TestOffsite(t *testing.T) {
	of := scaleOf(t)
	store := objectstore.Start(t)
	s := agenttest.Archived(t)
	where := store.Config("server-1")
	s.Config.Archive.S3 = &where
	s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	small, large := s.FilledDatabase(t), s.Made(t, database.Managed)
	began := time.Now()
	for n := range of.databases {
		check.Must(s.Super.Exec("CREATE DATABASE other_" + strconv.Itoa(n)))(t)
	}
	check.Must(s.Owner(t, large).Exec(`CREATE TABLE filling (id serial PRIMARY KEY, text text);
		INSERT INTO filling (text) SELECT md5(n::text) || md5((n * 7)::text) || md5((n * 11)::text)
		FROM generate_series(1, ` + strconv.Itoa(of.megabytes*6500) + `) n`))(t)
	t.Logf("filled in %s", since(began))
	began = time.Now()
	s.SendArchiveKey(t)
	check.Eventually(t, "there is no window", func() bool { return !s.Window(t, small).Window.Empty() })
	t.Logf("first copy %s", since(began))
	load(t, s, small, 3*time.Second)
	for name, w := range map[string]agenttest.Wanted{"small": small, "large": large} {
		var at time.Time
		check.NoError(t, s.Owner(t, w).QueryRow("SELECT clock_timestamp()").Scan(&at))
		began := time.Now()
		report := s.BackedUp(t, w.Past(agenttest.NewUUID(), agenttest.BackupName, at))
		if report.State != command.BackupDone {
			t.Fatalf("%+v", report)
		}
		took := since(began)
		t.Logf("%s: the file of a moment took %s", name, took)
		if name == "small" && took > smallWithin {
			t.Errorf("that is more than %s", smallWithin)
		}
	}
}

// What is promised, on two cores.
const (
	smallWithin  = 30 * time.Second // to have a small database back
	storedWithin = 5 * time.Second  // of a segment, after its end
)

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }

// load has clients write, and reports how long after its end a segment is stored.
func load(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var clients sync.WaitGroup
	for range 4 {
		db := s.Owner(t, w)
		clients.Go(func() {
			for ctx.Err() == nil {
				_, _ = db.ExecContext(ctx, "INSERT INTO things (name) SELECT md5(n::text) FROM generate_series(1, 100) n")
			}
		})
	}
	var lags []time.Duration
	last := ""
	dir := s.One(t, "SHOW data_directory")
	for ctx.Err() == nil {
		var name sql.NullString
		var at sql.NullTime
		check.NoError(t, s.Super.QueryRow("SELECT last_archived_wal, last_archived_time FROM pg_stat_archiver").Scan(&name, &at))
		if name.String != last {
			last = name.String
			if info, err := os.Stat(filepath.Join(dir, "pg_wal", last)); err == nil {
				lags = append(lags, at.Time.Sub(info.ModTime()))
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	clients.Wait()
	if len(lags) == 0 {
		t.Fatal("no segment was stored meanwhile")
	}
	slices.Sort(lags)
	t.Logf("%d segments; stored after %s (median), %s (most)", len(lags), lags[len(lags)/2], lags[len(lags)-1])
	if late := lags[len(lags)*99/100]; late > storedWithin {
		t.Errorf("one in a hundred is stored after %s, and not %s", late, storedWithin)
	}
}
