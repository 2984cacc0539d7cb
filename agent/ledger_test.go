package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
)

// An agent beside the ledger of another version says so, and leaves charge of the server to whoever has it.
func TestALedgerOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	s.Child(t, "").Kill()
	const inCharge = "SELECT instance FROM ledger.agent"
	before := s.One(t, inCharge)
	for _, change := range []string{"UPDATE ledger.format SET number = number + 1", "DROP TABLE ledger.format"} {
		check.Must(s.Super.Exec(change))(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, log, ended := s.Run(ctx, t)
		check.Eventually(t, "the agent does not say that the ledger is another version's", func() bool {
			for _, e := range log.All() {
				if text, _ := e.ContextMap()["error"].(string); strings.Contains(text, "make clean-dev") {
					return true
				}
			}
			return false
		})
		cancel()
		check.NoError(t, <-ended)
		if now := s.One(t, inCharge); now != before {
			t.Errorf("after %s, %s is in charge", change, now)
		}
	}
}
