package dev_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestADeadPartIsStartedAgain(t *testing.T) {
	s := newSurvivor(t)
	t.Run("PgBouncer", func(t *testing.T) {
		s.killPooler(t)
		s.says(t, "PgBouncer has ended (signal: killed); it is started again")
		s.says(t, "PgBouncer runs again")
		s.serves(t)
	})
	t.Run("PgBouncer without its port", func(t *testing.T) {
		taken := s.usurp(t)
		s.says(t, "PgBouncer has ended (signal: killed); it is started again")
		s.says(t, "PgBouncer cannot be started: "+taken.Addr().String()+" is in use by another program; it is tried again in ")
		taken.Close()
		s.says(t, "PgBouncer runs again")
		s.serves(t)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		kill(t, s.postmaster(t))
		s.says(t, "PostgreSQL has ended (signal: killed); it is started again")
		s.says(t, "PostgreSQL runs again")
		s.serves(t)
		s.create(t, "second")
		s.backsUp(t)
	})
	t.Run("PostgreSQL without its data", func(t *testing.T) {
		data, away := s.state("postgres/data"), s.state("postgres/away")
		pid := s.postmaster(t)
		check.NoError(t, os.Rename(data, away))
		kill(t, pid)
		s.says(t, "PostgreSQL cannot be started: open "+data)
		check.NoError(t, os.Rename(away, data))
		s.says(t, "PostgreSQL runs again")
		s.serves(t)
	})
	t.Run("the agent", func(t *testing.T) {
		s.shell(`. .pgherd/dev/env
			psql -q "${PGHERD_SERVER_URL%/*}/pgherd_maintenance" -c "UPDATE ledger.agent SET instance = 'another'"`)
		s.says(t, "the agent has ended (another agent has taken over this server); it is started again")
		s.says(t, "the agent runs again")
		s.backsUp(t)
	})
	t.Run("Ctrl-C while PgBouncer cannot be started", func(t *testing.T) {
		defer s.usurp(t).Close()
		s.says(t, "PgBouncer has ended")
		s.stop()
		log, err := os.ReadFile(s.state("postgres/postgres.log"))
		if err != nil || !strings.HasSuffix(string(log), "database system is shut down\n") {
			t.Errorf("PostgreSQL was not shut down cleanly (%v):\n%s", err, log)
		}
		if after := s.out.String()[s.seen:]; strings.Count(after, "stopped;") != 1 {
			t.Errorf("after Ctrl-C it says:\n%s", after)
		}
	})
}
