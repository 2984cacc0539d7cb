package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/core/health"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// reported waits until the health report has a reason, and returns what it says.
func reported(t testing.TB, s *agenttest.Stack, code health.Code, status health.Status) (message string) {
	t.Helper()
	report := healthOf(t, s)
	defer func() {
		if message == "" {
			t.Logf("the last report: %s, %+v", report.Status, report.Reasons)
		}
	}()
	check.Eventually(t, "health does not say "+string(code), func() bool {
		report = healthOf(t, s)
		for _, r := range report.Reasons {
			if r.Code == string(code) && report.Status == string(status) {
				message = r.Message
				return true
			}
		}
		return false
	})
	return message
}

func wellAgain(t testing.TB, s *agenttest.Stack) {
	t.Helper()
	report := healthOf(t, s)
	defer func() {
		if report.Status != "healthy" {
			t.Logf("the last report: %+v", report.Reasons)
		}
	}()
	check.Eventually(t, "health does not say that all is well", func() bool {
		report = healthOf(t, s)
		return report.Status == "healthy" && len(report.Reasons) == 0
	})
}

// Whatever is wrong with a server is in the health report, and no longer when it is mended.
func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.ChecksEvery, s.Config.Name = 200*time.Millisecond, "db7"
	dump := filepath.Join(t.TempDir(), "pg_dump")
	check.NoError(t, os.WriteFile(dump, []byte("#!/bin/sh\nexec '"+s.Config.PgDump+"' \"$@\"\n"), 0o755))
	s.Config.PgDump = dump
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, log, _ := s.Started(ctx, t)
	reported(t, s, health.PoolerDown, health.Degraded)
	s.StartBouncer(ctx, t)
	wellAgain(t, s)
	f := a.Figures()
	if f.Connections == nil || f.Connections.InUse == 0 || f.Waits == nil || len(f.Disks) != 2 || len(f.Held) != 4 {
		t.Errorf("figures %+v", f)
	}
	check.Eventually(t, "PgBouncer's memory is not known", func() bool { return a.Figures().PoolerMemory != nil })
	aside := func(path string) func() {
		return func() { check.NoError(t, os.Rename(path, path+".aside")) }
	}
	back := func(path string) func() {
		return func() { check.NoError(t, os.Rename(path+".aside", path)) }
	}
	run := func(statement string) func() { return func() { check.Must(s.Super.Exec(statement))(t) } }
	const unwritable = `INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, open, backup_key)
		VALUES ('y', 'no.name', 'single_login', 1, 'o', true, decode(repeat('6b', 32), 'hex'));
		INSERT INTO pooler.gate VALUES ('y', 'no.name', true)`
	const gone = "DELETE FROM pooler.gate WHERE login = 'y'; DELETE FROM ledger.database WHERE id = 'y'"
	for _, c := range []struct {
		code        health.Code
		status      health.Status
		spoil, mend func()
	}{
		{health.BackupsUnwritable, health.Degraded, aside(s.Config.BackupDir), back(s.Config.BackupDir)},
		{health.ReloadRefused, health.Degraded, run(unwritable), run(gone)},
		{health.DumpUnusable, health.Degraded, aside(dump), back(dump)},
		{health.LoginFailing, health.Degraded, run("REVOKE EXECUTE ON FUNCTION pooler.login_secret FROM pgherd_pooler"),
			run("GRANT EXECUTE ON FUNCTION pooler.login_secret TO pgherd_pooler")},
		{health.Oversold, health.Healthy, run(`INSERT INTO ledger.database
			(id, name, role_model, connection_cap, made_by, open, backup_key)
			VALUES ('x', 'x', 'single_login', 1000, 'o', true, decode(repeat('6b', 32), 'hex'))`),
			run("DELETE FROM ledger.database WHERE id = 'x'")},
	} {
		c.spoil()
		a.ReloadPooler()
		reported(t, s, c.code, c.status)
		c.mend()
		a.ReloadPooler()
		wellAgain(t, s)
	}

	check.NoError(t, syscall.Kill(s.Bouncer.Pid(), syscall.SIGTERM))
	select {
	case <-s.Bouncer.Done():
	case <-time.After(5 * time.Second):
		t.Error("PgBouncer without customers does not end on SIGTERM")
	}
	reported(t, s, health.PoolerDown, health.Degraded)
	check.NoError(t, s.Bouncer.Start(ctx))
	wellAgain(t, s)
	if n := log.FilterMessage("the server is not as it should be").Len(); n > 15 {
		t.Errorf("%d lines about what was wrong", n)
	}
	for _, line := range log.All() {
		if line.ContextMap()["server"] != "db7" {
			t.Errorf("a line does not name the server: %+v", line)
		}
	}
}

// An agent of a server that was never prepared says what to do, in its report and in its log, and not again and again.
func TestAnUnpreparedServerIsSaidToBe(t *testing.T) {
	t.Parallel()
	other := *agenttest.Shared(t) // whose files it does not touch before it is in charge
	s := &other
	s.Config.PostgresPort, s.Config.Listen = clustertest.New(t, nil).Port(), "127.0.0.1:"+freePort(t)
	s.Config.ChecksEvery = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, log, _ := s.Run(ctx, t)
	check.Eventually(t, "the agent does not listen", func() bool {
		_, _, err := s.Request(http.MethodGet, "/healthz", nil)
		return err == nil
	})
	if said := reported(t, s, health.NotInitialized, health.Degraded); !strings.Contains(said, "run pgherd agent init") {
		t.Errorf("health says %s", said)
	}
	time.Sleep(2 * time.Second)
	lines := 0
	for _, line := range log.All() {
		if text, err := json.Marshal(line.ContextMap()); err == nil && strings.Contains(string(text), "run pgherd agent init") {
			lines++
		}
	}
	if lines == 0 || lines > 4 {
		t.Errorf("%d lines of the log say what to do", lines)
	}
}

// Without the credentials file an agent ends with one line that says what to do.
func TestAnAgentWithoutCredentialsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := agenttest.Shared(t).Config
	c.CredentialsFile = filepath.Join(t.TempDir(), "credentials.json")
	if _, err := agent.New(c, agent.Deps{}); err == nil || !strings.Contains(err.Error(), "pgherd agent init") {
		t.Errorf("%v", err)
	}
}

// A server on which no backup has room says so, though customers can use it.
func TestAServerWithoutRoomForBackupsIsNotHealthy(t *testing.T) {
	s := agenttest.Own(t)
	s.Config.ChecksEvery, s.Config.BackupReserve = 200*time.Millisecond, 1<<60
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Started(ctx, t)
	s.StartBouncer(ctx, t)
	reported(t, s, health.BackupsFull, health.Degraded)
}
