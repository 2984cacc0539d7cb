package agent_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// archived is a stack with an archive and a database, and a moment of it: things then has a row "before" and none "after".
type archived struct {
	*agenttest.Stack
	of agenttest.Wanted
	at time.Time
}

// begin makes the database and the moment. An agent is in charge. There is another database, which changes meanwhile.
func (x *archived) begin(t *testing.T) {
	t.Helper()
	other := x.Owner(t, x.FilledDatabase(t))
	x.create(t)
	check.Must(other.Exec("VACUUM things"))(t) // without checksums, WAL says only that its pages are visible to all
	x.writes(t)
}

// create makes the database.
func (x *archived) create(t *testing.T) {
	t.Helper()
	x.SendArchiveKey(t)
	x.of = x.FilledDatabase(t)
	check.Eventually(t, "there is no window", func() bool {
		w := x.Window(t, x.of).Window
		return !w.Empty() && w.From.Before(time.Now())
	})
}

// writes makes the moment.
func (x *archived) writes(t *testing.T) {
	t.Helper()
	owner := x.Owner(t, x.of)
	check.Must(owner.Exec("INSERT INTO things (name) VALUES ('before')"))(t)
	check.NoError(t, owner.QueryRow("SELECT clock_timestamp() FROM pg_sleep(0.01)").Scan(&x.at))
	check.Must(owner.Exec("SELECT pg_sleep(0.01)"))(t)
	check.Must(owner.Exec("INSERT INTO things (name) VALUES ('after'); DELETE FROM things WHERE name = 'before'"))(t)
}

// copied is when the newest copy of the server was made; zero: there is none.
func (x *archived) copied(a *agent.Agent) (at time.Time) {
	if f := a.Figures().Archive; f != nil {
		at = f.Copied
	}
	return at
}

// write writes something, and has PostgreSQL hand it over.
func (x *archived) write(t *testing.T) {
	t.Helper()
	check.Must(x.Super.Exec("SELECT pg_create_restore_point('written')"))(t)
	x.One(t, "SELECT pg_switch_wal()")
}

const writtenSegment = "SELECT pg_walfile_name(pg_current_wal_insert_lsn())"

// endedSince is how many segments were ended since one was the writtenSegment.
func (x *archived) endedSince(t *testing.T, before string) (n int) {
	t.Helper()
	check.NoError(t, x.Super.QueryRow("SELECT count(*) FROM pg_ls_waldir() WHERE name > $1 AND name <= pg_walfile_name("+
		"pg_current_wal_insert_lsn()) AND name ~ '^[0-9A-F]{24}$'", before).Scan(&n))
	return n
}

// storeGoesAway has nothing be stored any more, until it comes back.
func storeGoesAway(t *testing.T, s *agenttest.Stack) (comesBack func()) {
	t.Helper()
	repository := filepath.Join(s.Config.BackupDir, "archive", "repository")
	check.NoError(t, os.Rename(repository, repository+".aside"))
	return func() {
		t.Helper()
		check.NoError(t, os.Rename(repository+".aside", repository))
	}
}

// restored has the database be as it was at a moment.
func (x *archived) restored(t *testing.T, operation, file string, at time.Time) {
	t.Helper()
	report := agenttest.Outcome(t, x.Stack, x.of.Past(operation, file, at), func(r command.BackupReport) bool {
		return r.State != command.BackupRunning
	})
	if report.State != command.BackupDone {
		t.Fatalf("%+v", report)
	}
	load := agenttest.Told(operation, 1, command.Load{DatabaseID: x.of.DatabaseID(), Compare: true, Source: command.Source{
		DatabaseID: x.of.DatabaseID(), Filename: backup.Filename(file), Passing: true,
	}})
	agenttest.Outcome(t, x.Stack, load, func(r command.LoadReport) bool { return r.State == command.LoadReady })
	x.DoneInTheEnd(t, x.of.Switching(operation))
}

// hadBack demands that a file of the moment is what the database was, and that nothing is left of the server beside.
func (x *archived) hadBack(t *testing.T, operation string) {
	t.Helper()
	x.restored(t, operation, agenttest.BackupName, x.at)
	var before, after, things int
	const count = `SELECT count(*) FILTER (WHERE name = 'before'), count(*) FILTER (WHERE name = 'after'), count(*) FROM things`
	check.NoError(t, x.Owner(t, x.of).QueryRow(count).Scan(&before, &after, &things))
	if before != 1 || after != 0 || things != 2001 {
		t.Errorf("it is of another moment: %d before, %d after, %d things", before, after, things)
	}
	if left := check.Must(os.ReadDir(filepath.Join(x.Config.BackupDir, "archive", "beside")))(t); len(left) != 0 {
		t.Errorf("%d folders are left", len(left))
	}
}

// A database is had back as it was at a moment, with what was committed before, and without what was committed after; also once
// it was replaced since.
func TestAMomentIsHadBack(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	x.hadBack(t, agenttest.NewUUID())
}

// An agent that is killed over its archive leaves nothing, and its successor goes on.
func TestKilledOverItsArchive(t *testing.T) {
	for _, point := range agenttest.PointsOf(t, "archive") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			x := archived{Stack: agenttest.Archived(t)}
			c := x.Child(t, "")
			x.StartBouncer(t.Context(), t)
			operation := agenttest.NewUUID()
			if point == "agent.archive.pushed" || point == "agent.archive.copied" {
				c.Kill()
				c = x.Child(t, point)
				x.SendArchiveKey(t)
				c.Died(t)
				x.Child(t, "")
				x.begin(t)
			} else {
				x.begin(t)
				c.Kill()
				x.Child(t, point).DiesOver(t, x.Stack, x.of.Past(operation, agenttest.BackupName, x.at))
				x.Child(t, "")
			}
			x.hadBack(t, operation)
		})
	}
}

// Who asks for windows of databases that were just made has segments ended; however many ask, none more while what was ended is
// not stored: each would take its place on the server's disk.
func TestWindowsOfYoungDatabases(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.create(t)
	comesBack := storeGoesAway(t, x.Stack)
	young := x.FilledDatabase(t)
	before := x.One(t, writtenSegment)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			for range 2 {
				if w := x.Window(t, young).Window; !w.Empty() {
					t.Errorf("it has a window, of which nothing is stored: %+v", w)
				}
			}
		})
	}
	asking.Wait()
	if ended := x.endedSince(t, before); ended > 2 { // one of another's, too
		t.Errorf("%d segments were ended", ended)
	}
	comesBack()
	check.Eventually(t, "there is no window", func() bool { return !x.Window(t, young).Window.Empty() })
}

// PostgreSQL notes which transactions are open, and ends no segment for that. The window of a database reaches on all the same,
// and while nothing is stored, who looks at it has one segment ended.
func TestWindowsOfAQuietServer(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.create(t)
	check.Must(x.Super.Exec("SELECT pg_switch_wal()"))(t)
	check.Must(x.Super.Exec("SELECT pg_log_standby_snapshot()"))(t)
	quiet := time.Now()
	check.Eventually(t, "its window ends", func() bool { return x.Window(t, x.of).Window.To.After(quiet) })
	comesBack := storeGoesAway(t, x.Stack)
	check.Must(x.Super.Exec("SELECT pg_log_standby_snapshot()"))(t)
	time.Sleep(61 * time.Second)
	before := x.One(t, writtenSegment)
	for range 3 {
		if w := x.Window(t, x.of).Window; w.Empty() {
			t.Error("there is no window any more")
		}
	}
	if ended := x.endedSince(t, before); ended > 1 {
		t.Errorf("%d segments were ended", ended)
	}
	comesBack()
}

// A moment at which the database was deleted is one of those that can be had back, once it is recovered.
func TestAMomentOfADeletedDatabaseIsHadBack(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.create(t)
	check.Must(x.Owner(t, x.of).Exec("INSERT INTO things (name) VALUES ('before')"))(t)
	x.DoneInTheEnd(t, agenttest.Told(agenttest.NewUUID(), 1, command.Isolate{DatabaseID: x.of.DatabaseID()}))
	check.NoError(t, x.Super.QueryRow("SELECT clock_timestamp() FROM pg_sleep(0.01)").Scan(&x.at))
	x.One(t, "SELECT pg_sleep(0.01)::text")
	x.DoneInTheEnd(t, agenttest.Told(agenttest.NewUUID(), 1, command.Rejoin{DatabaseID: x.of.DatabaseID(), Open: true}))
	check.Must(x.Owner(t, x.of).Exec("INSERT INTO things (name) VALUES ('after'); DELETE FROM things WHERE name = 'before'"))(t)
	x.hadBack(t, agenttest.NewUUID())
}
