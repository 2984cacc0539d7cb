package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/health"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// serverVersion is what the stack's PostgreSQL says of its version.
func serverVersion(t testing.TB, s *agenttest.Stack) string {
	t.Helper()
	return "PostgreSQL " + s.One(t, "SHOW server_version")
}

// ends waits until an agent has ended by itself.
func ends(t testing.TB, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(check.Patience):
		t.Fatal("the agent goes on")
		return nil
	}
}

// TestAgentRefusesAPgBouncerThatComesLater starts PgBouncer after the agent, which writes its files, as on a new server.
func TestAgentRefusesAPgBouncerThatComesLater(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.Versions = floors.Policy{Accept: []string{serverVersion(t, s)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, log, ended := s.Started(ctx, t)
	s.StartBouncer(ctx, t)
	version := check.Must(floors.Parse(check.Must(floors.Said(ctx, check.Must(toolchain.Find())(t).PgBouncer, nil))(t)))(t)
	if (floors.Policy{}).Judge(version).Below {
		if err := ends(t, ended); !floors.Is(err) || !strings.HasPrefix(err.Error(), version.Text) {
			t.Errorf("it ended with %v", err)
		}
		return
	}
	check.Eventually(t, "the version of PgBouncer is not seen", func() bool {
		return slices.ContainsFunc(a.Programs(), func(p command.Program) bool { return p.Version == version.Text && !p.BelowFloor })
	})
	if log.FilterMessage("version").FilterField(zap.String("version", version.Text)).Len() != 1 {
		t.Error("the log does not name it once")
	}
}

// TestAgentAcceptsVersionsByName has an agent refuse a pg_dump with known holes, before it is in charge, and work with what was
// accepted by name, which it says at every start.
func TestAgentAcceptsVersionsByName(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	good := s.Config.PgDump
	s.Config.PgDump = filepath.Join(t.TempDir(), "pg_dump")
	check.NoError(t, os.WriteFile(s.Config.PgDump, []byte("#!/bin/sh\necho 'pg_dump (PostgreSQL) 17.4'\n"), 0o755))
	accepted := []string{serverVersion(t, s), "PgBouncer 1.20.0"}
	s.Config.Versions = floors.Policy{Accept: accepted}
	a, _, ended := s.Run(t.Context(), t)
	var refusal *floors.Refusal
	err := ends(t, ended)
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "pg_dump (PostgreSQL) 17.4 is older than 17.11") {
		t.Errorf("it ended with %v", err)
	}
	if n := s.One(t, "SELECT count(*) FROM ledger.agent"); n != "0" || a.InCharge() {
		t.Error("it took charge")
	}
	s.Config.PgDump = good
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		_, log, ended := s.Started(ctx, t)
		cancel()
		check.NoError(t, ends(t, ended))
		for _, text := range accepted {
			said := log.FilterMessage("a version with known holes would be accepted (--accept-versions)")
			if said.FilterField(zap.String("version", text)).Len() != 1 {
				t.Errorf("%s is not named: %+v", text, log.All())
			}
		}
	}
}

// TestAgentRefusesTheProgramOfAnotherServer has the program that replays the archive be of another major version than PostgreSQL.
func TestAgentRefusesTheProgramOfAnotherServer(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	tools := check.Must(toolchain.Find())(t)
	other := pgversion.Oldest
	if tools.Major == other {
		other = pgversion.Newest
	}
	program := filepath.Join(t.TempDir(), "postgres")
	check.NoError(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\necho 'postgres (PostgreSQL) %d.2'\n", other), 0o755))
	s.Config.Archive = &agent.Archive{
		PgBackRest: tools.PgBackRest, Postgres: program, Socket: filepath.Join(t.TempDir(), "push"),
	}
	a, _, ended := s.Run(t.Context(), t)
	want := fmt.Sprintf("--postgres-program: it is PostgreSQL %d.2, and the server's data are of PostgreSQL %d", other, tools.Major)
	if err := ends(t, ended); err == nil || !strings.Contains(err.Error(), want) || a.InCharge() {
		t.Errorf("it ended with %v", err)
	}
}

// TestPgBouncerComesAndHangs has PgBouncer start after the agent, when a good pg_dump has been replaced by nothing, which hides
// nobody else's version. Then it is frozen: connections hang, none is refused. So the agent ends it, and it can be started anew.
func TestPgBouncerComesAndHangs(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.PgDump = filepath.Join(t.TempDir(), "pg_dump")
	check.NoError(t, os.WriteFile(s.Config.PgDump, []byte("#!/bin/sh\necho 'pg_dump (PostgreSQL) 17.12'\n"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, log, _ := s.Started(ctx, t)
	check.NoError(t, os.Remove(s.Config.PgDump))
	if a.PoolerAnswers() {
		t.Error("a PgBouncer that was never started answers")
	}
	s.StartBouncer(ctx, t)
	check.Eventually(t, "PgBouncer is not seen", a.PoolerAnswers)
	version := check.Must(floors.Said(ctx, check.Must(toolchain.Find())(t).PgBouncer, nil))(t)
	check.Eventually(t, "the version of PgBouncer is not seen", func() bool {
		return slices.ContainsFunc(a.Programs(), func(p command.Program) bool { return p.Version == version })
	})

	log.TakeAll() // it did not answer before it was started
	check.NoError(t, s.Bouncer.Freeze())
	began := time.Now()
	check.Eventually(t, "it is not noticed that PgBouncer stopped", func() bool { return !a.PoolerAnswers() })
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("noticed after %s", took)
	}
	if log.FilterMessage("PgBouncer does not answer, so customers cannot connect").Len() == 0 {
		t.Errorf("the log says nothing: %+v", log.All())
	}
	reported(t, s, health.PoolerHangs, health.Degraded)
	select {
	case <-s.Bouncer.Done():
	case <-time.After(2 * pooler.HangTime):
		t.Fatal("the agent has not ended it")
	}
	if took := time.Since(began); took < pooler.HangTime-time.Second {
		t.Errorf("ended after %s", took)
	}
	check.NoError(t, s.Bouncer.Start(context.WithoutCancel(ctx)))
	check.Eventually(t, "it is not noticed that PgBouncer is back", a.PoolerAnswers)
}
