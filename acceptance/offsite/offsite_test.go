// Package offsite measures what it costs to keep an archive in an object store, and how long it takes to have a database back
// from it; and it has databases back as they were at random moments, and compares.
package offsite

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/recovery"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

// scale is how much there is: in make test little, in make offsite what the bounds are promised for. Only there they are held.
type scale struct {
	databases, megabytes int
	measured             bool
	long                 time.Duration // of each measure
	pairs                int           // of writers, without and with the archive; single ones differ by several percent
}

func scaleOf(t *testing.T) scale {
	t.Helper()
	s := scale{databases: 3, megabytes: 10, long: 3 * time.Second, pairs: 1}
	if text := os.Getenv("PGHERD_OFFSITE"); text != "" {
		_, err := fmt.Sscanf(text, "%dx%d", &s.databases, &s.megabytes)
		check.NoError(t, err, "PGHERD_OFFSITE is databases x megabytes")
		s.measured, s.long, s.pairs = true, time.Minute, 11
	}
	return s
}

// archiveTimeout is that of agent init, if nothing else is said.
const archiveTimeout = 10 * time.Second

// world is a server with an archive in an object store, and an agent in a process of its own.
type world struct {
	*agenttest.Stack
	scale
	store        *objectstore.Server
	counted      *counter
	agent        *agenttest.Child
	small, large agenttest.Wanted
	clients      []*sql.DB // of small, one connection each
}

func TestOffsite(t *testing.T) {
	w := start(t, scaleOf(t))
	w.idle(t)
	w.busy(t)
	w.writers(t)
	w.smallBack(t)
	w.largeBack(t)
	w.lost(t)
}

func start(t *testing.T, of scale) *world {
	t.Helper()
	if !of.measured {
		t.Parallel()
	}
	w := &world{scale: of, store: objectstore.Start(t), Stack: agenttest.Archived(t)}
	w.counted = count(t, w.store.Config("server-1"))
	w.Config.Bucket = &w.counted.config
	w.agent = w.Child(t, "")
	w.StartBouncer(t.Context(), t)
	w.fill(t)
	return w
}

// fill makes the databases, and waits for the first copy.
func (w *world) fill(t *testing.T) {
	t.Helper()
	began := time.Now()
	w.small, w.large = w.FilledDatabase(t), w.Made(t, database.Managed)
	for n := range w.databases {
		check.Must(w.Super.Exec("CREATE DATABASE other_" + strconv.Itoa(n)))(t)
	}
	check.Must(w.Owner(t, w.large).Exec(`CREATE TABLE filling (id serial PRIMARY KEY, text text);
		INSERT INTO filling (text) SELECT md5(n::text) || md5((n * 7)::text) || md5((n * 11)::text)
		FROM generate_series(1, ` + strconv.Itoa(w.rows()) + `) n`))(t)
	w.newTPCB(t)
	configure(t, w.Stack, "archive_timeout", "'"+archiveTimeout.String()+"'")
	t.Logf("%d databases, one of %d MB: filled in %s", w.databases, w.megabytes, since(began))
	began = time.Now()
	w.SendArchiveKey(t)
	patiently(t, "there is no window", func() bool { return !w.Window(t, w.small).Window.Empty() })
	t.Logf("first copy: %s, %d requests, %d objects, %d MB", since(began), w.counted.total(), w.objects(t), w.store.Received(t)>>20)
}

// rows are those of the large database.
func (s scale) rows() int { return s.megabytes * 6500 }

// configure changes a setting of the server. Its value is SQL.
func configure(t testing.TB, s *agenttest.Stack, name, value string) {
	t.Helper()
	check.Must(s.Super.Exec("ALTER SYSTEM SET " + name + " = " + value))(t)
	check.Must(s.Super.Exec("SELECT pg_reload_conf()"))(t)
}

// hold prints a figure beside its bound, and holds it where bounds are promised.
func (w *world) hold(t *testing.T, what string, got, most time.Duration) {
	t.Helper()
	t.Logf("%s: %s, promised %s", what, got.Round(time.Millisecond), most.Round(time.Millisecond))
	if w.measured && got > most {
		t.Errorf("%s: that is too long", what)
	}
}

// holdShare is hold for a share of something.
func (w *world) holdShare(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%s: %.2f %%, promised %.0f %%", what, 100*got, 100*most)
	if w.measured && got > most {
		t.Errorf("%s: that is too much", what)
	}
}

// What is promised, on two cores.
const (
	smallWithin  = 30 * time.Second // to have a small database back
	fetchWithin  = 15 * time.Second // of that, until the replay
	storedWithin = 5 * time.Second  // of a segment, after its end
	lostWithin   = 15 * time.Second // before a server was killed and erased
	largeShare   = 1.5              // of the time that the programs take by hand
	writersShare = 0.05             // of the time of who writes
	idleShare    = 0.01             // of a core
)

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }

// patiently waits until something holds that may take minutes.
func patiently(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 10*time.Minute {
			t.Fatal(what)
		}
	}
}

// past has a database dumped as it was at a moment, and returns when the replay began.
func (w *world) past(
	t *testing.T, of agenttest.Wanted, operation string, name backup.Filename, at time.Time,
) (fetched time.Duration) {
	t.Helper()
	began, replaying := time.Now(), false
	var report command.BackupReport
	patiently(t, "the moment is not had back", func() bool {
		report = agenttest.As[command.BackupReport](t, w.Done(t, of.Past(operation, string(name), at)))
		if report.Stage == recovery.Replaying && !replaying {
			fetched, replaying = time.Since(began), true
		}
		return report.State != command.BackupRunning
	})
	if report.State != command.BackupDone {
		t.Fatalf("%+v", report)
	}
	return fetched
}

func (w *world) now(t *testing.T) (at time.Time) {
	t.Helper()
	check.NoError(t, w.Super.QueryRow("SELECT clock_timestamp()").Scan(&at))
	return at
}

// smallBack has a small database back as it is now: that is a moment for which a segment must be ended.
func (w *world) smallBack(t *testing.T) {
	t.Helper()
	began, at := time.Now(), w.now(t)
	fetched := w.past(t, w.small, agenttest.NewUUID(), agenttest.BackupName, at)
	w.hold(t, "a small database to a given second", time.Since(began), smallWithin)
	w.hold(t, "of which to fetch it", fetched, fetchWithin)
}

// largeBack compares with the programs by hand, to a copy that could be put in the place of the database.
func (w *world) largeBack(t *testing.T) {
	t.Helper()
	operation := agenttest.NewUUID()
	began, at := time.Now(), w.now(t)
	w.past(t, w.large, operation, agenttest.BackupName, at)
	dumped := time.Since(began)
	load := agenttest.Told(operation, 1, command.Load{DatabaseID: w.large.DatabaseID(), Compare: true, Source: command.Source{
		DatabaseID: w.large.DatabaseID(), Filename: backup.Filename(agenttest.BackupName), Passing: true,
	}})
	var report command.LoadReport
	patiently(t, "the copy is not loaded", func() bool {
		report = agenttest.As[command.LoadReport](t, w.Done(t, load))
		return report.State != command.LoadRunning
	})
	if report.State != command.LoadReady {
		t.Fatalf("%+v", report)
	}
	ours := time.Since(began)
	byHand := w.byHand(t, at)
	t.Logf("a database of %d MB: to a dump %s, whole %s; by hand %s", w.megabytes, dumped.Round(time.Millisecond),
		ours.Round(time.Millisecond), byHand.Round(time.Millisecond))
	w.hold(t, "a large database to a given second", ours, time.Duration(largeShare*float64(byHand)))
}
