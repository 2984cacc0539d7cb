package joblogin

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// endPause is between two looks at sessions that were told to end.
const endPause = 10 * time.Millisecond

// EndSessions terminates the sessions that a condition selects, and asks again until none is left or the patience is over, which
// is no error: it returns how many are left.
func EndSessions(
	ctx context.Context, admin *sql.DB, patience time.Duration, condition string, args ...any,
) (left int, err error) {
	query := `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (` + condition + `)`
	for deadline := time.Now().Add(patience); ; {
		err := admin.QueryRowContext(ctx, query, args...).Scan(&left)
		if err != nil || left == 0 || time.Now().After(deadline) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, fmt.Errorf("%d sessions are still open: %w", left, ctx.Err())
		case <-time.After(endPause):
		}
	}
}
