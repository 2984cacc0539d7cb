package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/health"
)

// A PostgreSQL that hangs, and refuses nobody, is said to be unreachable within the limit of that check; then the agent no longer
// says that it is in charge, neither in its report nor in what it tells the control plane, which it answers all the same.
func TestAPostgresThatHangsIsSaidTo(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.ChecksEvery = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Started(ctx, t)
	known := func() (known command.Capabilities) {
		began := time.Now()
		_, body, err := s.Request(http.MethodGet, "/v1/capabilities", nil)
		check.NoError(t, err)
		check.NoError(t, json.Unmarshal(body, &known))
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("capabilities came after %s", took)
		}
		return known
	}
	if got := known().State; !got.InCharge || !got.Postgres {
		t.Errorf("before: %+v", got)
	}
	check.NoError(t, s.PG.Freeze())
	defer func() { check.NoError(t, s.PG.Thaw()) }()
	began := time.Now()
	if got := known().State; got.Postgres {
		t.Errorf("when it hangs: %+v", got)
	}
	reported(t, s, health.PostgresDown, health.Degraded)
	if took := time.Since(began); took > 11*time.Second {
		t.Errorf("it is unreachable only after %s", took)
	}
	said := reported(t, s, health.NotInCharge, health.Degraded)
	if !strings.Contains(said, "PostgreSQL has not answered since") || strings.Contains(said, "%!") {
		t.Errorf("health says %s", said)
	}
	for _, r := range healthOf(t, s).Reasons {
		if r.Code == string(health.CheckHangs) && strings.Contains(r.Message, `"postgres"`) {
			t.Errorf("health says %s", r.Message)
		}
	}
	if got := known().State; got.InCharge || got.Postgres {
		t.Errorf("capabilities say %+v", got)
	}
	check.NoError(t, s.PG.Thaw())
	check.Eventually(t, "it is not noticed that PostgreSQL is back", func() bool {
		got := known().State
		return got.InCharge && got.Postgres && healthOf(t, s).PostgresConnected
	})
}
