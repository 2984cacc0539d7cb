package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// lost is a server whose disk is gone, but for its archive, and what is called again until it is back.
type lost struct {
	*archived
	dataDir string
	rebuild agent.Rebuild
	told    []string
}

// lose ends PostgreSQL by force, and moves what it has aside.
func (x *archived) lose(t *testing.T) *lost {
	t.Helper()
	l := &lost{archived: x, dataDir: x.One(t, "SHOW data_directory")}
	check.NoError(t, x.PG.Kill())
	check.NoError(t, os.Rename(l.dataDir, l.dataDir+".old"))
	check.NoError(t, errors.Join(os.Mkdir(l.dataDir, 0o700), cluster.Own(l.dataDir))) // as a package leaves it
	for _, name := range []string{"segments", "key"} {
		check.NoError(t, os.Remove(filepath.Join(x.Config.BackupDir, "archive", name)))
	}
	l.rebuild = agent.Rebuild{
		DataDir: l.dataDir, Passphrase: agenttest.ArchiveKey, BackupDir: x.Config.BackupDir, Archive: *x.Config.Archive,
		Tell: func(line string) { l.told = append(l.told, line) },
	}
	return l
}

// back has the server come back, and starts it.
func (l *lost) back(t *testing.T) archive.Rebuilt {
	t.Helper()
	done, err := l.rebuild.Run(t.Context())
	if err != nil {
		t.Fatal(err, l.told)
	}
	check.NoError(t, l.PG.Start(context.WithoutCancel(t.Context())))
	return done
}

// written has an owner insert one row after the other until the returned function is called, which returns when the answer to
// each came.
func (x *archived) written(t *testing.T) (end func() []time.Time) {
	t.Helper()
	owner := x.Owner(t, x.of)
	check.Must(owner.Exec("CREATE TABLE answered (n integer PRIMARY KEY)"))(t)
	var answers []time.Time
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if _, err := owner.Exec("INSERT INTO answered VALUES ($1)", n); err != nil {
				return
			}
			answers = append(answers, time.Now())
		}
	})
	return func() []time.Time {
		close(stop)
		writer.Wait()
		return answers
	}
}

// followed commits something that says where it came from, as all do that a database has written elsewhere while it moves here.
func (x *archived) followed(t *testing.T) {
	t.Helper()
	conn := check.Must(x.Super.Conn(t.Context()))(t)
	defer conn.Close()
	for _, call := range []string{
		"pg_replication_origin_create('elsewhere')", "pg_replication_origin_session_setup('elsewhere')", "pg_current_xact_id()",
		"pg_replication_origin_session_reset()",
	} {
		check.Must(conn.ExecContext(t.Context(), "SELECT "+call))(t)
	}
}

// A server whose disk is gone comes back from its archive as the same one: with all that was committed some seconds before, with
// its logins and passwords. Moments of before and after the loss can be had back, and none of what was lost. The server that was
// lost must not go on beside it.
func TestALostServerComesBack(t *testing.T) {
	t.Parallel()
	x := &archived{Stack: agenttest.Archived(t)}
	ctx, stop := context.WithCancel(t.Context())
	_, _, ended := x.Started(ctx, t)
	x.StartBouncer(t.Context(), t)
	check.NoError(t, os.Chmod(x.One(t, "SHOW data_directory"), 0o750))
	x.begin(t)
	x.followed(t)
	installation := x.One(t, "SELECT id::text FROM ledger.installation")
	end := x.written(t)
	time.Sleep(4 * time.Second)
	running := agent.Rebuild{DataDir: x.One(t, "SHOW data_directory")}
	if _, err := running.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "a server runs in") {
		t.Error(err)
	}
	killed := time.Now()
	l := x.lose(t)
	answers := end()
	stop()
	check.NoError(t, <-ended)

	l.refuses(t)
	done := l.back(t)
	if done.Installation != installation || done.Databases != 2 || done.Timeline != 2 || done.LastCommit.After(killed) {
		t.Errorf("%+v", done)
	}
	if mode := check.Must(os.Stat(l.dataDir))(t).Mode().Perm(); mode != 0o750 {
		t.Errorf("its folder has the mode %o", mode)
	}
	if left, _ := filepath.Glob(l.dataDir + ".recovering*"); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	var kept, highest int
	check.NoError(t, x.Owner(t, x.of).QueryRow("SELECT count(*), coalesce(max(n), -1) FROM answered").Scan(&kept, &highest))
	if kept != highest+1 || kept > len(answers)+1 {
		t.Errorf("%d rows up to %d came back of %d", kept, highest, len(answers))
	}
	if kept < len(answers) && killed.Sub(answers[kept]) > 3*time.Second {
		t.Errorf("a row is lost that was answered %s before the end", killed.Sub(answers[kept]))
	}
	t.Logf("%d of %d rows came back; %s", kept, len(answers), strings.Join(l.told, "; "))

	ctx, stop = context.WithCancel(t.Context())
	_, _, ended = x.Started(ctx, t)
	x.SendArchiveKey(t)
	agenttest.Works(t, "the owner's password", x.PooledOwner(t, x.of))
	check.Must(x.Owner(t, x.of).Exec("INSERT INTO things (name) VALUES ('since')"))(t)
	since := time.Now()
	check.Eventually(t, "the window does not reach to now", func() bool { return x.Window(t, x.of).Window.To.After(since) })
	w := x.Window(t, x.of).Window
	if len(w.Gaps) != 1 || !w.Gaps[0].From.Equal(done.LastCommit) || !w.Gaps[0].To.After(killed) || w.Gaps[0].To.After(since) {
		t.Errorf("the window is %+v, and the last commit of %s", w, done.LastCommit)
	}
	x.restored(t, agenttest.NewUUID(), "20260302_120000.sql.gz", since)
	var sinceThen int
	check.NoError(t, x.Owner(t, x.of).QueryRow("SELECT count(*) FROM things WHERE name = 'since'").Scan(&sinceThen))
	if sinceThen != 1 {
		t.Errorf("%d rows of after the loss were had back", sinceThen)
	}
	x.hadBack(t, agenttest.NewUUID())
	stop()
	check.NoError(t, <-ended)

	check.NoError(t, x.PG.Kill())
	check.NoError(t, os.Rename(l.dataDir, l.dataDir+".new"))
	check.NoError(t, os.Rename(l.dataDir+".old", l.dataDir))
	check.NoError(t, x.PG.Start(context.WithoutCancel(t.Context())))
	_, _, ended = x.Run(t.Context(), t)
	select {
	case err := <-ended:
		if !errors.Is(err, archive.ErrReplaced) {
			t.Error(err)
		}
	case <-time.After(check.Patience):
		t.Error("the lost server goes on")
	}
	if err := x.PooledOwner(t, x.of).Ping(); err == nil {
		t.Error("the lost server lets customers in")
	}
}

// refuses demands of each mistake that it is told, and that nothing is left of the attempt.
func (l *lost) refuses(t *testing.T) {
	t.Helper()
	saying := func(text string) (program string) {
		program = filepath.Join(filepath.Dir(l.dataDir), strings.ReplaceAll(text, " ", "_"))
		check.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755))
		return program
	}
	other := pgversion.Oldest
	if tools := check.Must(toolchain.Find())(t); tools.Major == other {
		other = pgversion.Newest
	}
	newest := saying("postgres (PostgreSQL) 19.2")
	another := saying(fmt.Sprintf("postgres (PostgreSQL) %d.2", other))
	dump := saying("pg_dump (PostgreSQL) 17.12")
	full := filepath.Join(filepath.Dir(l.dataDir), "full")
	check.NoError(t, os.MkdirAll(filepath.Join(full, "base"), 0o700))
	check.NoError(t, cluster.Own(full))
	foreign := filepath.Join(filepath.Dir(l.dataDir), "foreign")
	check.NoError(t, errors.Join(os.Mkdir(foreign, 0o700), os.MkdirAll(filepath.Join(foreign+".recovering", "data"), 0o700)))
	check.NoError(t, cluster.Own(foreign))
	for says, change := range map[string]func(*agent.Rebuild){
		"--data-dir: \"data\" is no absolute path": func(r *agent.Rebuild) { r.DataDir = "data" },
		full + " is not empty":                     func(r *agent.Rebuild) { r.DataDir = full },
		"is root's":                                func(r *agent.Rebuild) { r.DataDir = filepath.Dir(l.dataDir) + "/new" },
		"no such file":                             func(r *agent.Rebuild) { r.DataDir = "/none/none" },
		"was not made by this command":             func(r *agent.Rebuild) { r.DataDir = foreign },
		"does not open with that passphrase":       func(r *agent.Rebuild) { r.Passphrase = strings.Repeat("x", 52) },
		"there is no archive":                      func(r *agent.Rebuild) { r.BackupDir = t.TempDir() },
		"--postgres-program: it is PostgreSQL 19.2, and servers have PostgreSQL 16 to 18": func(r *agent.Rebuild) {
			r.Archive.Postgres = newest
		},
		fmt.Sprintf("it is PostgreSQL %d.2, and the server's data are of PostgreSQL", other): func(r *agent.Rebuild) {
			r.Archive.Postgres = another
		},
		"--postgres-program: it is pg_dump (PostgreSQL) 17.12: give": func(r *agent.Rebuild) { r.Archive.Postgres = dump },
		"--pgbackrest: ":                         func(r *agent.Rebuild) { r.Archive.PgBackRest = newest + "x" },
		"does not have that moment: it has from": func(r *agent.Rebuild) { r.At = time.Now().AddDate(-1, 0, 0) },
	} {
		r := l.rebuild
		change(&r)
		_, err := r.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", says, err)
		}
		if left := check.Must(os.ReadDir(l.dataDir))(t); len(left) != 0 {
			t.Errorf("%s: %s is there", says, left[0].Name())
		}
	}
	for _, path := range check.Must(filepath.Glob(filepath.Join(filepath.Dir(l.dataDir), "*.recovering")))(t) {
		if path != foreign+".recovering" {
			t.Errorf("%s is left", path)
		}
	}
}
