package setup

import (
	"context"
	"database/sql"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
)

// DefaultSlotLimit is how much of its log PostgreSQL keeps for a database that moves to another server while no agent runs that
// looks after it, on a server where nobody has set it.
const DefaultSlotLimit = "32GB"

// limitSlots sets the limit where nobody has.
func limitSlots(ctx context.Context, db *sql.DB) error {
	set, err := pg.One[bool](ctx, db, `SELECT EXISTS (
		SELECT FROM pg_catalog.pg_file_settings WHERE name = 'max_slot_wal_keep_size' AND error IS NULL)`)
	if err != nil || set {
		return err
	}
	return alterSystem(ctx, db, "max_slot_wal_keep_size", DefaultSlotLimit)
}

// inspectMoves warns of what keeps databases from moving to or from the server while they serve; empty: nothing.
func inspectMoves(ctx context.Context, db *sql.DB) (warning string, err error) {
	const query = `SELECT name || ' = ' || setting AS one FROM pg_catalog.pg_settings
		WHERE name = 'wal_level' AND setting <> 'logical'
		OR name IN ('max_replication_slots', 'max_wal_senders') AND setting::int < 4
		OR name = 'max_logical_replication_workers' AND setting::int < 2 ORDER BY 1`
	found, err := pg.Column(ctx, db, query)
	if len(found) > 0 {
		warning = strings.Join(found, ", ") + ": databases move to and from this server only while customers are kept out of them; " +
			"otherwise set wal_level = logical in postgresql.conf, leave the rest of these as PostgreSQL has it by default, and restart it"
	}
	return warning, err
}
