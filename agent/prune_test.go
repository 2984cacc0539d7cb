package agent_test

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
)

// TestAgentPrunesTheLedgerAtItsStart leaves an operation of two months ago, whose command has ended, and one of today.
func TestAgentPrunesTheLedgerAtItsStart(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	check.Must(s.super.Exec(`INSERT INTO ledger.operation (id, epoch, spoken_at)
		VALUES ('old', 1, now() - interval '60 days'), ('new', 1, now())`))(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, log, ended := s.run(t, ctx)
	check.Eventually(t, "the log does not say that one operation was pruned", func() bool {
		return log.FilterMessage("the ledger was pruned").FilterField(zap.Int64("operations", 1)).Len() == 1
	})
	if left := s.one(t, "SELECT string_agg(id, ' ') FROM ledger.operation"); left != "new" {
		t.Errorf("left: %s", left)
	}
	cancel()
	check.NoError(t, ends(t, ended))
}
