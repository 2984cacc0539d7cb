package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
)

// hashed is a number for some columns of a row, and summed one for those of many rows in any order.
func hashed(columns string) string { return "hashtextextended(ROW(" + columns + ")::text, 0)" }

func summed(columns, of string) string {
	return "(SELECT sum(" + hashed(columns) + ") FROM " + of + ")"
}

// ofDatabase is a table for its rows of the database d.
func ofDatabase(table string) string { return table + " WHERE database_id = d.id" }

// recordColumns are those of the record that pages show.
var recordColumns = "d." + strings.Join(slices.DeleteFunc(slices.Clone(databaseTable.Columns), func(column string) bool {
	return column == "sized_at" || column == "next_reading_at"
}), ", d.")

// Each part is found by an index of the database's rows. Two activity entries may be committed in another order than that of
// their times, so the newest one would not do.
var pulses = pgdb.Written(`SELECT d.id, ` + hashed(strings.Join([]string{
	recordColumns, "a.plan", "a.database_bytes",
	summed("id, status, stage, progress, bytes_done, bytes_total, cancel_requested, error_code",
		ofDatabase("operations")+" AND "+open),
	`(SELECT id FROM ` + ofDatabase("operations") + ` ORDER BY created_at DESC, id DESC LIMIT 1)`,
	summed("id", "(SELECT id FROM "+ofDatabase("audit_entries")+" ORDER BY at DESC, id DESC LIMIT 5) newest"),
	`(SELECT ROW(filename, verified_at, damaged_at)::text FROM ` + ofDatabase("backups") +
		` ORDER BY created_at DESC, filename DESC LIMIT 1)`,
	summed("id, display_name, status, credential_generation, credential_expires_at", ofDatabase("roles")+" AND status <> 'removed'"),
	summed("id, refusal, revealed", ofDatabase("role_changes")+" AND status = 'pending'"),
	summed("id, role", ofDatabase("memberships")),
	summed("id, role, status, expires_at", ofDatabase("invitations")+" AND status IN ('open', 'expired')"),
	summed("lease_status, expires_at", ofDatabase("previews")),
	summed("operation_id, recovery_id, purge_after", ofDatabase("tombstones")),
}, ",\n")) + `::text AS pulse
	FROM databases d JOIN accounts a ON a.id = d.account_id WHERE d.id = ANY($1::uuid[])`)

func (d databases) Pulses(ctx context.Context, list []id.DatabaseID) (map[id.DatabaseID]string, error) {
	type row struct {
		ID    id.DatabaseID `db:"id"`
		Pulse string        `db:"pulse"`
	}
	rows, err := pgdb.All[row](ctx, d.Session, pulses, pgdb.Listed(list))
	found := make(map[id.DatabaseID]string, len(rows))
	for _, r := range rows {
		found[r.ID] = r.Pulse
	}
	return found, err
}
