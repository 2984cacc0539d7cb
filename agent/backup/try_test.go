package backup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/check"
)

// What is tried in the restored copy is tried there, and counts.
func TestWhatIsTriedInTheCopyCounts(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	req, broken, where := w.Request(), errors.New("it does not work"), ""
	req.Try = func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, `SELECT current_database() || ' with ' || count(*) FROM t`).ReadAll()
		where = string(check.Must(results, err)(t)[0].Rows[0][0])
		return broken
	}
	result, err := w.Run(w.Agent, req)
	if !errors.Is(err, broken) || result.VerifiedAt != nil || where != "verify_22222222222242228222222222222222 with 10" {
		t.Errorf("%+v, %v, tried in %s", result, err, where)
	}
	w.LeavesNothing()
}
