package setup

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

// alterSystem sets a parameter of the whole server, which takes it over at once or, for some, when it is started again. From
// PostgreSQL 17 on, an administrator can have forbidden that.
func alterSystem(ctx context.Context, db *sql.DB, name, value string) error {
	_, err := db.ExecContext(ctx, "ALTER SYSTEM SET "+name+" = "+pq.QuoteLiteral(value))
	if err == nil {
		_, err = db.ExecContext(ctx, "SELECT pg_catalog.pg_reload_conf()")
		return err
	}
	const query = "SELECT coalesce(pg_catalog.current_setting('allow_alter_system', true), 'on') = 'off'"
	if off, asked := pg.One[bool](ctx, db, query); asked == nil && off {
		return fmt.Errorf("%s cannot be set: allow_alter_system is off; turn it on in postgresql.conf, reload PostgreSQL, and run "+
			"agent init again", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}
