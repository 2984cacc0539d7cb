package extensions

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
)

// A proof that is canceled leaves nothing.
func TestACanceledProofLeavesNothing(t *testing.T) {
	w := backuptest.NewOwn(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := Prover{copies: w.Agent.Copies, backups: w.Agent.Backups}
	change := command.QualifyExtension{Extension: extension.PgTrgm, Version: "1.6"}
	_, err := p.qualify(ctx, backuptest.OperationID, change, func(stage string, _ int, _ command.Bytes) {
		if stage == copies.StageVerifying {
			cancel()
		}
	})
	if err == nil {
		t.Error("it ended well")
	}
	w.LeavesNothing()
}
