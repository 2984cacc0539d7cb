package cluster_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// killPostmaster kills PostgreSQL's first process only, as the system does when memory is short.
func killPostmaster(t *testing.T, pg *cluster.Postgres) {
	t.Helper()
	check.NoError(t, syscall.Kill(pg.Pid(), syscall.SIGKILL))
	ends(t, pg.Done(), "PostgreSQL")
	if got := pg.Exit(); got != "signal: killed" {
		t.Errorf("it has ended by %q", got)
	}
}

// A session that computes does not notice that its postmaster is gone. A shell in the data folder is nobody's session.
func TestRecoverEndsTheSessionsOfADeadPostmaster(t *testing.T) {
	pg := clustertest.New(t, nil)
	clustertest.Exec(t, pg.URL("postgres"), "CREATE TABLE kept AS SELECT 'row' AS what")
	shell := exec.Command("sleep", "60")
	shell.Dir = one(t, pg.URL("postgres"), "SHOW data_directory")
	check.NoError(t, shell.Start())
	shellEnded := make(chan error, 1)
	go func() { shellEnded <- shell.Wait() }()
	go func() { _, _ = ask(t.Context(), pg.URL("postgres"), "SELECT count(*) FROM generate_series(1, 1e12)") }()
	for one(t, pg.URL("postgres"), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%1e12%' AND state = 'active'") != "2" {
		time.Sleep(10 * time.Millisecond)
	}
	killPostmaster(t, pg)
	check.NoError(t, pg.Recover(t.Context()))
	if got := one(t, pg.URL("postgres"), "SELECT what FROM kept"); got != "row" {
		t.Errorf("the table has %q", got)
	}
	select {
	case err := <-shellEnded:
		t.Errorf("a program in the data folder was ended: %v", err)
	default:
		_ = shell.Process.Kill()
	}
}

func TestRecoverHasTimeWhereStartHasNot(t *testing.T) {
	pg := clustertest.New(t, nil)
	pidFile := filepath.Join(one(t, pg.URL("postgres"), "SHOW data_directory"), "postmaster.pid")
	const limit = 100 * time.Millisecond
	pg.LimitStarts(limit)
	for name, start := range map[string]func(context.Context) error{"start": pg.Start, "recover": pg.Recover} {
		killPostmaster(t, pg)
		go delay(t, pidFile, pg.Pid(), 5*limit)
		err := start(t.Context())
		if late := errors.Is(err, context.DeadlineExceeded); late != (name == "start") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "start" {
			ends(t, pg.Done(), "a start that was given up")
			check.NoError(t, pg.Recover(t.Context()))
		}
	}
}

// delay freezes the postmaster that follows another, as soon as it is there.
func delay(t *testing.T, pidFile string, before int, by time.Duration) {
	for t.Context().Err() == nil {
		text, _ := os.ReadFile(pidFile)
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(first); err == nil && pid != before {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(by)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A program that is missing when its child shall start again leaves an object that can be stopped, and started later.
func TestAStartWithoutItsProgram(t *testing.T) {
	tools := check.Must(toolchain.Find())(t)
	p := newPooled(t)
	p.options.Tools = tools
	p.options.Tools.PgBouncer = filepath.Join(t.TempDir(), "pgbouncer")
	link := func() {
		write(t, p.options.Tools.PgBouncer, "#!/bin/sh\nexec "+tools.PgBouncer+` "$@"`+"\n")
		check.NoError(t, os.Chmod(p.options.Tools.PgBouncer, 0o755))
	}
	link()
	pooler := check.Must(cluster.RunPooler(t.Context(), p.options))(t)
	path := os.Getenv("PATH")
	t.Setenv("PATH", "") // where the caller is root, another program starts this one
	check.NoError(t, errors.Join(os.Remove(p.options.Tools.PgBouncer), pooler.Kill()))
	if err := pooler.Start(t.Context()); err == nil {
		t.Error("it started without its program")
	}
	ends(t, pooler.Done(), "what did not start")
	stopPooler(t, pooler)
	link()
	t.Setenv("PATH", path)
	check.NoError(t, pooler.Start(t.Context()))
	stopPooler(t, pooler)
}
