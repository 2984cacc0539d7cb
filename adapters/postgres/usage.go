package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

var (
	sampleTable = pgdb.TableOf[usage.Sample]("usage_samples")
	lineTable   = pgdb.TableOf[usage.Line]("usage_lines")
	takenTable  = pgdb.TableOf[usage.Taken]("usage_taken")
)

var (
	usageServers = pgdb.Written(`SELECT ` + serverTable.Row("s") + `, coalesce(k.position, '') AS "taken.position",
			coalesce(k.until, $1) AS "taken.until", coalesce(k.asked_at, $1) AS "taken.asked_at", s.id AS "taken.server_id"
		FROM servers s LEFT JOIN usage_taken k ON k.server_id = s.id
		WHERE EXISTS (SELECT FROM databases d WHERE d.server_id = s.id) ORDER BY s.name`)
	lockTaken = pgdb.Written(`INSERT INTO usage_taken AS t (server_id, position, until, asked_at)
		SELECT id, '', $2, $2 FROM servers WHERE id = $1
		ON CONFLICT (server_id) DO UPDATE SET position = t.position RETURNING ` + takenTable.Row("t"))
	setTaken = pgdb.Written("UPDATE usage_taken SET position = $2, until = $3, asked_at = $4 WHERE server_id = $1")
	holdings = pgdb.Written(`SELECT d.id AS database_id, d.account_id, d.name, d.size_bytes AS bytes,
			coalesce(b.bytes, 0)::bigint AS backup_bytes, d.connection_cap
		FROM databases d LEFT JOIN (
			SELECT b.database_id, sum(b.size_bytes) AS bytes FROM backups b
			WHERE b.database_id = ANY($2::uuid[]) AND ` + countedBackup + ` GROUP BY b.database_id
		) b ON b.database_id = d.id
		WHERE d.server_id = $1 AND d.id = ANY($2::uuid[]) ORDER BY d.id`)
	// The arguments of these two are arrays, one for each column.
	addSamples = pgdb.Written(adding(sampleTable.Name, sampleTable.Columns, "hour, database_id", map[string]string{
		"active_peak":  "greatest(t.active_peak, excluded.active_peak)",
		"waiting_peak": "greatest(t.waiting_peak, excluded.waiting_peak)",
		"bytes":        averaged("bytes"), "backup_bytes": averaged("backup_bytes"), "connection_cap": "excluded.connection_cap",
	}))
	addLines = pgdb.Written(adding(lineTable.Name, lineTable.Columns, "month, database_id", map[string]string{
		"account_id": "excluded.account_id", "name": "excluded.name",
	}))
	// The index begins with the hour, and is asked for each.
	samplesOf = pgdb.Written(`SELECT ` + sampleTable.Row("t") + ` FROM usage_samples t
		WHERE t.database_id = ANY($1::uuid[]) AND t.hour < $3
			AND t.hour = ANY (ARRAY(SELECT generate_series($2::timestamptz, $3::timestamptz, '3600 seconds')))
		ORDER BY t.hour, t.database_id`)
	linesOf = pgdb.Written(`SELECT ` + lineTable.Row("t") + ` FROM usage_lines t
		WHERE t.account_id = $1 AND t.month = $2 AND ` + ofKey + ` AND (t.month, t.database_id) > ($4, $5)
		ORDER BY t.month, t.database_id LIMIT $6`)
	sumOfLines = pgdb.Written(`SELECT coalesce(sum(seen_ms), 0)::bigint AS seen_ms, coalesce(sum(active_ms), 0)::bigint AS active_ms,
			coalesce(sum(byte_hours), 0)::bigint AS byte_hours, coalesce(sum(backup_byte_hours), 0)::bigint AS backup_byte_hours
		FROM usage_lines t WHERE account_id = $1 AND month = $2 AND ` + ofKey)
)

// ofKey is whether a line t is of a database that a key is bound to, or no key is given.
const ofKey = "($3 = '' OR EXISTS (SELECT FROM key_databases b WHERE b.key_id = $3 AND b.database_id = t.database_id))"

// usageTypes are the types of the columns that are no bigint.
var usageTypes = map[string]string{
	"database_id": "uuid", "account_id": "uuid", "hour": "timestamptz", "month": "timestamptz", "name": "text",
}

// adding is the statement that adds rows to those rows t that have the same key: a column as the rule says that it has, or else
// the sum.
func adding(table string, columns []string, key string, rules map[string]string) string {
	arrays, sets := make([]string, len(columns)), []string{}
	for i, c := range columns {
		kind, special := usageTypes[c]
		if !special {
			kind = "bigint"
		}
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
		if strings.Contains(key, c) {
			continue
		}
		rule, special := rules[c]
		if !special {
			rule = "t." + c + " + excluded." + c
		}
		sets = append(sets, c+" = "+rule)
	}
	return fmt.Sprintf("INSERT INTO %s AS t (%s) SELECT * FROM unnest(%s) ON CONFLICT (%s) DO UPDATE SET %s",
		table, strings.Join(columns, ", "), strings.Join(arrays, ", "), key, strings.Join(sets, ", "))
}

// averaged is the rule of a column of samples that is weighed by how long each was seen, rounded up, as usage.Sample.Plus does.
func averaged(column string) string {
	return fmt.Sprintf(`CASE WHEN t.seen_ms + excluded.seen_ms = 0 THEN excluded.%[1]s ELSE div(t.%[1]s::numeric * t.seen_ms
		+ excluded.%[1]s::numeric * excluded.seen_ms + t.seen_ms + excluded.seen_ms - 1, t.seen_ms + excluded.seen_ms) END`, column)
}

type usages struct{ pgdb.Session }

func (u usages) Servers(ctx context.Context) ([]ports.UsageServer, error) {
	return pgdb.All[ports.UsageServer](ctx, u.Session, usageServers, time.Time{})
}

func (u usages) LockTaken(ctx context.Context, of id.ServerID) (usage.Taken, error) {
	return pgdb.Locked[usage.Taken](ctx, u.Session, lockTaken, of, time.Time{})
}

func (u usages) SetTaken(ctx context.Context, t usage.Taken) error {
	return u.MustChange(ctx, ports.ErrNoRow, setTaken, t.ServerID, t.Position, t.Until, t.AskedAt)
}

func (u usages) Holdings(ctx context.Context, of id.ServerID, list []id.DatabaseID) ([]usage.Holding, error) {
	return pgdb.All[usage.Holding](ctx, u.Session, holdings, of, pgdb.Listed(list))
}

func (u usages) Add(ctx context.Context, samples []usage.Sample, lines []usage.Line) error {
	if err := u.Write(ctx, addSamples, sampleTable.Arrays(samples)...); err != nil {
		return err
	}
	return u.Write(ctx, addLines, lineTable.Arrays(lines)...)
}

func (u usages) Samples(ctx context.Context, list []id.DatabaseID, in usage.Period) ([]usage.Sample, error) {
	return pgdb.All[usage.Sample](ctx, u.Session, samplesOf, pgdb.Listed(list), in.From.Truncate(time.Hour), in.To)
}

func (u usages) Lines(ctx context.Context, of ports.UsageFilter, p ports.Page) ([]usage.Line, error) {
	return pgdb.PageOf[usage.Line](ctx, u.Session, linesOf, pgdb.Forward, p, of.AccountID, of.Month, of.KeyID)
}

func (u usages) Sum(ctx context.Context, of ports.UsageFilter) (usage.Sums, error) {
	return pgdb.One[usage.Sums](ctx, u.Session, sumOfLines, of.AccountID, of.Month, of.KeyID)
}
