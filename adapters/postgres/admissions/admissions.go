// Package admissions finds the keys of requests, and keeps their rate buckets in the metadata database.
package admissions

import (
	"context"
	"net/netip"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Admissions implements ports.Admissions.
type Admissions struct{ db *pgdb.DB }

// On are the admissions of a metadata database.
func On(db *pgdb.DB) Admissions { return Admissions{db} }

var (
	keyTable     = pgdb.TableOf[account.Key]("api_keys").WithOptional("namespace_id", "trust_id")
	accountTable = pgdb.TableOf[account.Account]("accounts")

	// found is a key with all that the checks before a handler need.
	found = `
		SELECT ` + keyTable.Row("t") + `, ` + accountTable.Prefixed("a", "account.") + `,
			EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled) AS maintenance
		FROM api_keys t JOIN accounts a ON a.id = t.account_id
		WHERE t.id = `

	// admitting is account.Key.Admits: for the hash, at the time $2, in microseconds, and from the address, which may be null.
	admitting = func(hash, client string) string {
		return `k.hash = ` + hash + ` AND k.revoked_at IS NULL
			AND (k.expires_at IS NULL OR k.expires_at > timestamptz 'epoch' + $2::bigint * interval '1 microsecond')
			AND (k.networks = '' OR ` + client + `::inet <<= ANY (string_to_array(k.networks, ' ')::cidr[]))`
	}

	find = pgdb.Written(found + `$1`)
	// Each column that is not needed would cost time.
	findForRead = pgdb.Written(`
		SELECT t.id, t.kind, t.account_id, t.user_id, coalesce(t.namespace_id::text, '') AS namespace_id, t.scope, t.hash,
			t.revoked_at, t.expires_at, t.networks, coalesce(t.trust_id::text, '') AS trust_id, t.issuer, t.subject,
			a.id AS "account.id", a.plan AS "account.plan", a.database_bytes AS "account.database_bytes",
			a.suspended_at AS "account.suspended_at", a.suspended_for AS "account.suspended_for",
			EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled) AS maintenance,
			coalesce(d.id::text, '') AS "database.id", coalesce(d.name, '') AS "database.name",
			coalesce(d.display_name, '') AS "database.display_name", coalesce(d.environment, '') AS "database.environment",
			coalesce(d.schedule, '') AS "database.schedule", coalesce(d.status, '') AS "database.status",
			coalesce(d.created_at, 'epoch') AS "database.created_at", coalesce(d.size_bytes, 0) AS "database.size_bytes",
			d.sized_at AS "database.sized_at", coalesce(d.storage_status, '') AS "database.storage_status",
			coalesce(d.postgres_version, 0) AS "database.postgres_version", coalesce(d.way_back, 0) AS "database.way_back",
			coalesce(s.public_host, '') AS "database.host", coalesce(s.public_port, 0) AS "database.port"
		FROM api_keys t JOIN accounts a ON a.id = t.account_id
		LEFT JOIN databases d ON d.id = $2 AND d.account_id = t.account_id LEFT JOIN servers s ON s.id = d.server_id
		WHERE t.id = $1`)
	// The bucket is touched only where the key is admitted.
	findAndLease = pgdb.Written(`
		WITH k AS (` + found + `$8),
		leased AS (` + leaseWhere(`SELECT FROM k WHERE `+admitting("$9", "$10")) + `)
		SELECT k.*, coalesce(leased.tat, 0) AS tat, coalesce(leased.lower, 0) AS lower, coalesce(leased.upper, 0) AS upper
		FROM k LEFT JOIN leased ON true`)
	take        = pgdb.Written(leaseWhere(`SELECT`))
	returnRests = pgdb.Written(`
		UPDATE rate_buckets b SET (tat, free) = (SELECT s.tat, s.free FROM ` +
		settledWith("$5::bigint", "r.period", "r.lower", "r.upper") + `)
		FROM (
			SELECT u.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) u (bucket, period, lower, upper)
			JOIN rate_buckets l ON l.bucket = u.bucket
			ORDER BY l.bucket FOR NO KEY UPDATE OF l) r
		WHERE b.bucket = r.bucket`)
	touch = pgdb.Written(`
		WITH used AS (
			SELECT t.id, timestamptz 'epoch' + u.at * interval '1 microsecond' AS at
			FROM api_keys t JOIN unnest($1::text[], $2::bigint[]) u (id, at) ON u.id = t.id
			ORDER BY t.id FOR NO KEY UPDATE OF t)
		UPDATE api_keys t SET last_used_at = used.at
		FROM used WHERE used.id = t.id AND (t.last_used_at IS NULL OR t.last_used_at < used.at)`)
	sweepBuckets = pgdb.Written("DELETE FROM rate_buckets WHERE tat <= $1")
)

type admission struct {
	account.Key
	Account     account.Account `db:"account"`
	Maintenance bool            `db:"maintenance"`
}

func (a admission) port() ports.Admission {
	return ports.Admission{Key: a.Key, Account: a.Account, Maintenance: a.Maintenance}
}

// Find implements ports.Admissions in one statement that writes nothing.
func (a Admissions) Find(ctx context.Context, key id.KeyID) (ports.Admission, error) {
	row, err := pgdb.One[admission](ctx, a.db.View(), find, key)
	return row.port(), err
}

// FindForRead implements ports.Admissions in one statement that writes nothing.
func (a Admissions) FindForRead(ctx context.Context, key id.KeyID, db id.DatabaseID) (ports.Admission, error) {
	row, err := pgdb.One[struct {
		admission
		Database database.Summary `db:"database"`
	}](ctx, a.db.View(), findForRead, key, db)
	found := row.port()
	if row.Database.ID != "" {
		found.Database = row.Database
		found.Database.QuotaBytes = account.DatabaseBytes(found.Account.Plan, found.Account.DatabaseBytes)
	}
	return found, err
}

// Lease implements ports.Admissions in one statement. Where it is sent again, because the connection was lost, it gives nothing
// back: that may have been done already.
func (a Admissions) Lease(ctx context.Context, r ports.LeaseRequest) (ports.Admission, ratelimit.Grant, error) {
	var row struct {
		admission
		grant
	}
	err := a.db.View().Run(ctx, findAndLease, func(ctx context.Context, stmt *sqlx.Stmt) error {
		arguments := leaseArguments(bucketOf(r.Credential.ID, r.Class), r.Limit, r.Ask, r.Now)
		r.Ask.Rest = ratelimit.Stretch{}
		return stmt.GetContext(ctx, &row, append(arguments, r.Credential.ID, r.Credential.Hash[:], inet(r.Client))...)
	})
	if err != nil {
		return ports.Admission{}, ratelimit.Grant{}, err
	}
	return row.port(), row.granted(), nil
}

// inet is an address as an argument; null where it is not known. An IPv4 address that is written as IPv6 is the IPv4 address.
func inet(a netip.Addr) any {
	if !a.IsValid() {
		return nil
	}
	return a.Unmap().WithZone("").String()
}

// Return implements ports.Admissions. The statement is never sent again. Buckets are locked in the order of their names, so that
// two hosts cannot deadlock.
func (a Admissions) Return(ctx context.Context, rests []ports.Rest, now time.Time) error {
	var buckets []string
	var periods, from, to []int64
	for _, r := range rests {
		lower, upper := micros(r.Stretch)
		buckets, periods = append(buckets, bucketOf(r.Key, r.Class)), append(periods, r.Limit.Period.Microseconds())
		from, to = append(from, lower), append(to, upper)
	}
	return a.db.Once(ctx, returnRests, pq.Array(buckets), pq.Array(periods), pq.Array(from), pq.Array(to), now.UnixMicro())
}

// Take implements ports.Admissions.
func (a Admissions) Take(
	ctx context.Context, bucket string, l ratelimit.Limit, now time.Time,
) (ratelimit.Decision, error) {
	row, err := pgdb.One[grant](ctx, a.db.View(), take, leaseArguments(bucket, l, ratelimit.Ask{Requests: 1}, now)...)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	_, d := ratelimit.Begin(l, row.granted(), now)
	return d, nil
}

// Touch implements ports.Admissions. Keys are locked in the order of their IDs, so that two hosts cannot deadlock.
func (a Admissions) Touch(ctx context.Context, used map[id.KeyID]time.Time) error {
	var ids, at = make([]string, 0, len(used)), make([]int64, 0, len(used))
	for key, when := range used {
		ids, at = append(ids, string(key)), append(at, when.UnixMicro())
	}
	return a.db.View().Exec(ctx, touch, pq.Array(ids), pq.Array(at))
}

// Sweep implements ports.Admissions.
func (a Admissions) Sweep(ctx context.Context, now time.Time) error {
	return a.db.View().Exec(ctx, sweepBuckets, now.Add(-ratelimit.Skew).UnixMicro())
}
