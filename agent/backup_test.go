package agent_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
)

// A stop ends customers' sessions, and not those of a dump, or of the change of an extension, that runs meanwhile.
func TestAJobOutlivesAStop(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	for i, login := range []string{"dump_0123456789abcdef0123456789abcdef", "ext_0123456789abcdef0123456789abcdef"} {
		outlivesAStop(t, s, w, login, int64(2+i))
	}
}

func outlivesAStop(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, login string, generation int64) {
	t.Helper()
	check.Must(s.Super.Exec("CREATE ROLE " + login + " LOGIN PASSWORD 'x'"))(t)
	t.Cleanup(func() { check.Must(s.Super.Exec("DROP OWNED BY " + login + "; DROP ROLE " + login))(t) })
	check.Must(s.Super.Exec(`GRANT CONNECT ON DATABASE "` + w.Name + `" TO ` + login))(t)
	dump := s.Direct(t, w.Name, login, "x")
	pid := "SELECT pg_backend_pid()"
	var before, after int
	check.NoError(t, dump.QueryRowContext(t.Context(), pid).Scan(&before))
	s.Done(t, w.Access(generation, false, true))
	if err := dump.QueryRowContext(t.Context(), pid).Scan(&after); err != nil || after != before {
		t.Errorf("the session was %d, and is %d after the stop: %v", before, after, err)
	}
}

func deleteFile(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	status, _, err := s.Request(http.MethodDelete, agenttest.BackupPath(w, agenttest.BackupName), nil)
	if err != nil || status != http.StatusNoContent {
		t.Errorf("delete: %d %v", status, err)
	}
}

// healthOf asks the agent for its report.
func healthOf(t testing.TB, s *agenttest.Stack) (report protocol.Health) {
	t.Helper()
	status, body, err := s.Request(http.MethodGet, "/health", nil)
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &report) != nil {
		t.Fatalf("health: %d %s %v", status, body, err)
	}
	return report
}
