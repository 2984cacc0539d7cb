package setup

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
)

// unmuted gives the databases of superusers, such as the maintenance database, the levels of the server's configuration files for
// good, unless they have levels of their own.
const unmuted = `SELECT pg_catalog.format('ALTER DATABASE %I SET %I = %L', d.datname, s.name, coalesce(f.setting, s.boot_val))
	FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles o ON o.oid = d.datdba AND o.rolsuper
	CROSS JOIN pg_catalog.pg_settings s
	LEFT JOIN LATERAL (SELECT setting FROM pg_catalog.pg_file_settings f WHERE f.name = s.name AND f.error IS NULL
		ORDER BY f.seqno DESC LIMIT 1) f ON true
	WHERE d.datallowconn AND s.name IN ('log_min_messages', 'log_min_error_statement') AND NOT EXISTS (
		SELECT FROM pg_catalog.pg_db_role_setting r, pg_catalog.unnest(r.setconfig) c
		WHERE r.setdatabase = d.oid AND r.setrole = 0 AND pg_catalog.starts_with(c, s.name || '='))`

// muted are the levels of all other sessions, and of the workers of autovacuum, which run customers' code too. Customers write as
// much as they like at every lower level: LOG is one of RAISE, and above ERROR here; a session that ends itself chooses the
// context of the FATAL line. No login but a superuser's can change either parameter, in any way.
var muted = []string{"ALTER ROLE ALL SET log_min_messages = 'panic'", "ALTER ROLE ALL SET log_min_error_statement = 'panic'"}

// muteCustomers keeps what customers' sessions say out of the server's log.
func muteCustomers(ctx context.Context, db *sql.DB) error {
	statements, err := pg.Column(ctx, db, unmuted)
	if err == nil {
		_, err = db.ExecContext(ctx, strings.Join(append(statements, muted...), ";"))
	}
	if err != nil {
		return fmt.Errorf("levels of the server's log: %w", err)
	}
	return nil
}
