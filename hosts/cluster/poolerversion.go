package cluster

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// CheckPooler fails where the PgBouncer behind a connection to its admin console is not of the version of the program that the
// tools name, or the tools do not name the program that PGHERD_PGBOUNCER does: a run on a second version would otherwise tell of
// the first.
func CheckPooler(ctx context.Context, console *sql.DB) error {
	tools, err := toolchain.Find()
	if err != nil {
		return err
	}
	if chosen := os.Getenv(toolchain.PoolerVariable); chosen != "" && chosen != tools.PgBouncer {
		return fmt.Errorf("%s is %s, and the tools name %s", toolchain.PoolerVariable, chosen, tools.PgBouncer)
	}
	want, err := floors.Said(ctx, tools.PgBouncer, nil)
	if err != nil {
		return err
	}
	runs, err := runningVersion(ctx, console)
	if err != nil {
		return fmt.Errorf("version of the PgBouncer that runs: %w", err)
	}
	if runs != want {
		return fmt.Errorf("%s runs, and %s is %s", runs, tools.PgBouncer, want)
	}
	return nil
}

// runningVersion asks again for a while: PgBouncer's port takes connections a moment before its socket does.
func runningVersion(ctx context.Context, console *sql.DB) (runs string, err error) {
	for deadline := time.Now().Add(StartLimit); ; time.Sleep(20 * time.Millisecond) {
		err = console.QueryRowContext(ctx, "SHOW VERSION").Scan(&runs)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return runs, err
		}
	}
}
