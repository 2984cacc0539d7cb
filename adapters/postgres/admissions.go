package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// takeFrom is the bucket's decision in SQL, the same as ratelimit.Decide: $1 is the bucket, $2 now, $3 the interval and $4 the
// period, in microseconds. A refused request leaves the bucket unchanged, but never more than full: a clock that was set back
// does not close a bucket for longer than its period. The row is written in both cases, so that the returned state is the one
// that decided, however many requests compete.
const takeFrom = `
	ON CONFLICT (bucket) DO UPDATE SET
		taken = greatest(least(b.tat, $2 + $4), $2) + $3 - $2 <= $4,
		tat = CASE WHEN greatest(least(b.tat, $2 + $4), $2) + $3 - $2 <= $4
			THEN greatest(b.tat, $2) + $3 ELSE least(b.tat, $2 + $4) END
	RETURNING b.tat, b.taken`

var (
	take = written(`
		INSERT INTO rate_buckets AS b (bucket, tat, taken) VALUES ($1::text, $2::bigint + $3::bigint, true)` +
		takeFrom)
	// The bucket is touched only where the presented hash is the stored one and the key is not revoked.
	admit = written(`
		WITH k AS (
			SELECT ` + keyTable.row("t") + `, ` + strings.Join(prefixed(accountTable, "a", "account."), ", ") + `,
				EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled) AS maintenance
			FROM api_keys t JOIN accounts a ON a.id = t.account_id
			WHERE t.id = $5),
		taken AS (
			INSERT INTO rate_buckets AS b (bucket, tat, taken)
			SELECT $1::text, $2::bigint + $3::bigint, true
			FROM k WHERE k.hash = $6 AND k.revoked_at IS NULL` + takeFrom + `)
		SELECT k.*, coalesce(taken.tat, 0) AS tat, coalesce(taken.taken, false) AS taken
		FROM k LEFT JOIN taken ON true`)
	touch = written(`
		WITH used AS (
			SELECT t.id, timestamptz 'epoch' + u.at * interval '1 microsecond' AS at
			FROM api_keys t JOIN unnest($1::text[], $2::bigint[]) u (id, at) ON u.id = t.id
			ORDER BY t.id FOR NO KEY UPDATE OF t)
		UPDATE api_keys t SET last_used_at = used.at
		FROM used WHERE used.id = t.id AND (t.last_used_at IS NULL OR t.last_used_at < used.at)`)
	sweepBuckets = written("DELETE FROM rate_buckets WHERE tat <= $1")
)

// prefixed lists the columns of a table under names that begin with prefix, as sqlx finds the fields of a nested struct.
func prefixed[T any](t table[T], alias, prefix string) []string {
	list := make([]string, len(t.columns))
	for i, column := range t.columns {
		list[i] = alias + "." + column + ` AS "` + prefix + column + `"`
	}
	return list
}

// bucketState is the result of a bucket's statement.
type bucketState struct {
	TAT   int64 `db:"tat"`
	Taken bool  `db:"taken"`
}

// decision describes the state that the statement has left behind.
func (b bucketState) decision(l ratelimit.Limit, now time.Time) ratelimit.Decision {
	tat := time.UnixMicro(b.TAT).UTC()
	if b.Taken {
		return ratelimit.Describe(l, tat, now)
	}
	return ratelimit.Decide(l, tat, now)
}

// Admit implements ports.Admissions in one statement.
func (s *Store) Admit(ctx context.Context, r ports.AdmissionRequest) (ports.Admission, error) {
	type admitted struct {
		account.Key
		Account     account.Account `db:"account"`
		Maintenance bool            `db:"maintenance"`
		bucketState
	}
	bucket := "key/" + string(r.Credential.ID) + "/" + string(r.Class)
	row, err := one[admitted](ctx, session{store: s}, admit,
		append(bucketArguments(bucket, r.Limit, r.Now), r.Credential.ID, r.Credential.Hash[:])...)
	if err != nil {
		return ports.Admission{}, err
	}
	a := ports.Admission{Key: row.Key, Account: row.Account, Maintenance: row.Maintenance}
	if row.Key.Accepts(r.Credential.Hash) {
		a.Decision = row.decision(r.Limit, r.Now)
	}
	return a, nil
}

// Take implements ports.Admissions.
func (s *Store) Take(
	ctx context.Context, bucket string, l ratelimit.Limit, now time.Time,
) (ratelimit.Decision, error) {
	state, err := one[bucketState](ctx, session{store: s}, take, bucketArguments(bucket, l, now)...)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return state.decision(l, now), nil
}

func bucketArguments(bucket string, l ratelimit.Limit, now time.Time) []any {
	return []any{bucket, now.UnixMicro(), l.Interval().Microseconds(), l.Period.Microseconds()}
}

// Touch implements ports.Admissions. Keys are locked in the order of their IDs, so that two hosts cannot deadlock.
func (s *Store) Touch(ctx context.Context, used map[id.KeyID]time.Time) error {
	var ids, at = make([]string, 0, len(used)), make([]int64, 0, len(used))
	for key, when := range used {
		ids, at = append(ids, string(key)), append(at, when.UnixMicro())
	}
	return s.alone(ctx, touch, pq.Array(ids), pq.Array(at))
}

// Sweep implements ports.Admissions.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.alone(ctx, sweepBuckets, now.UnixMicro())
}

// alone runs a single statement outside a transaction, which may be repeated.
func (s *Store) alone(ctx context.Context, st *statement, args ...any) error {
	one := session{store: s}
	return one.run(ctx, st, func(stmt *sqlx.Stmt) error {
		_, err := stmt.ExecContext(ctx, args...)
		return err
	})
}
