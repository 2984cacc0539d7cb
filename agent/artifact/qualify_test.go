package artifact_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
)

// What is tried in the restored copy is tried there, and counts.
func TestWhatIsTriedInTheCopyCounts(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	req, broken, where := w.request(), errors.New("it does not work"), ""
	req.Try = func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, `SELECT current_database() || ' with ' || count(*) FROM t`).ReadAll()
		where = string(check.Must(results, err)(t)[0].Rows[0][0])
		return broken
	}
	result, err := w.run(w.agent, req)
	if !errors.Is(err, broken) || result.VerifiedAt != nil || where != "verify_22222222222242228222222222222222 with 10" {
		t.Errorf("%+v, %v, tried in %s", result, err, where)
	}
	if left := w.leftovers(); left != "" {
		t.Error(left)
	}
}

// A proof that is canceled leaves nothing.
func TestACanceledProofLeavesNothing(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.agent.Qualify(ctx, operationID, extension.PgTrgm, "1.6", func(stage string, _ int, _ command.Bytes) {
		if stage == artifact.StageVerifying {
			cancel()
		}
	})
	if err == nil {
		t.Error("it ended well")
	}
	if left := w.leftovers(); left != "" {
		t.Error(left)
	}
}
