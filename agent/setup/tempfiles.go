package setup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/pg"
)

// DefaultTempFileLimit is what one session may put on PostgreSQL's disk to sort and to hash, on a server where nobody has set it.
const DefaultTempFileLimit = "10GB"

// inspectTempFileLimit refuses a limit that PostgreSQL would not take, before anything is changed.
func inspectTempFileLimit(ctx context.Context, db *sql.DB, limit string) error {
	if limit == "" {
		return nil
	}
	taken, err := pg.One[string](ctx, db, "SELECT pg_catalog.set_config('temp_file_limit', $1, true)", limit)
	if err != nil {
		return fmt.Errorf("temp-file-limit: %w", err)
	}
	if taken == "0" {
		return errors.New("temp-file-limit: 0 would end every query that has to sort on disk; give a size such as " +
			DefaultTempFileLimit + ", or -1 for no limit")
	}
	return nil
}

// limitTempFiles sets the limit for every session of the server, including those that are open. An empty limit keeps what an
// administrator has set, also where that is no limit. Only who has SET on the parameter can lift it for a session: superusers,
// and the agent for the copies that verify backups.
func limitTempFiles(ctx context.Context, db *sql.DB, limit string) error {
	if limit == "" {
		set, err := pg.One[bool](ctx, db, `SELECT EXISTS (
			SELECT FROM pg_catalog.pg_file_settings WHERE name = 'temp_file_limit' AND error IS NULL)`) // not for this session
		if err != nil || set {
			return err
		}
		limit = DefaultTempFileLimit
	}
	return alterSystem(ctx, db, "temp_file_limit", limit)
}
