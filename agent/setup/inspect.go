package setup

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// minReserved is how many connections must be kept for the agent when customers have used up all others.
const minReserved = 10

// inspect refuses a server on which the guarantees to customers would not hold.
func inspect(ctx context.Context, db *sql.DB) (Report, error) {
	var version, reserved int
	var super bool
	var listen string
	err := db.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int / 10000,
		current_setting('reserved_connections', true)::int, current_setting('is_superuser')::bool,
		current_setting('listen_addresses')`).Scan(&version, ignoreNull{&reserved}, &super, &listen)
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("reading the server's settings: %w", err)
	case version != 16:
		return Report{}, fmt.Errorf("the server is PostgreSQL %d; only 16 is supported", version)
	case !super:
		return Report{}, fmt.Errorf("agent init needs a superuser")
	case reserved < minReserved:
		return Report{}, fmt.Errorf("reserved_connections is %d; set it to %d or more in postgresql.conf and restart PostgreSQL",
			reserved, minReserved)
	}
	if err := refuseTrust(ctx, db); err != nil {
		return Report{}, err
	}
	var report Report
	if !onLoopback(listen) {
		report.Warnings = append(report.Warnings, "PostgreSQL listens on "+listen+
			"; customers should reach it through PgBouncer only: set listen_addresses = 'localhost'")
	}
	return report, nil
}

func refuseTrust(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT line_number, coalesce(error, '') FROM pg_catalog.pg_hba_file_rules
		WHERE auth_method = 'trust' OR error IS NOT NULL ORDER BY line_number`)
	if err != nil {
		return fmt.Errorf("reading pg_hba.conf: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line int
		var broken string
		if err := rows.Scan(&line, &broken); err != nil {
			return err
		}
		if broken == "" {
			broken = "lets clients in without a password (trust)"
		}
		found = append(found, fmt.Sprintf("line %d %s", line, broken))
	}
	if err := rows.Err(); err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("pg_hba.conf: %s; use scram-sha-256 or peer, then run agent init again", strings.Join(found, "; "))
}

func onLoopback(listen string) bool {
	addresses := strings.FieldsFunc(listen, func(r rune) bool { return r == ',' || r == ' ' })
	return !slices.ContainsFunc(addresses, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		return a != "localhost" && (err != nil || !ip.IsLoopback())
	})
}

// ignoreNull scans a number that an older server does not have.
type ignoreNull struct{ to *int }

func (n ignoreNull) Scan(v any) error {
	var x sql.NullInt64
	err := x.Scan(v)
	*n.to = int(x.Int64)
	return err
}
