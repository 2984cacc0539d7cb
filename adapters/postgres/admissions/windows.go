package admissions

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// reserving is ratelimit.Window.Take in SQL; the conformance suite compares the two. $1 is the bucket, $2 now, $3 the period, $4
// the count. Times are in microseconds. The row is written in any case, so that the returned state is the one that decided.
const reserving = `
	INSERT INTO rate_buckets AS b (bucket, tat, used, taken)
	SELECT $1::text, $2::bigint + $3::bigint, ARRAY[$2], true
	WHERE EXISTS (ALLOWED)
	ON CONFLICT (bucket) DO UPDATE SET (used, taken, tat) = (
		SELECT n.used, l.number < $4::int, n.used[cardinality(n.used)] + $3
		FROM (
			SELECT coalesce(array_agg(at), '{}') AS live, count(*) AS number
			FROM (SELECT CASE WHEN u > $2 + SKEW THEN $2 ELSE u END AS at FROM unnest(b.used) u) clamped
			WHERE at + $3 > $2) l
		CROSS JOIN LATERAL (
			SELECT array_agg(at ORDER BY at) AS used
			FROM unnest(CASE WHEN l.number < $4 THEN l.live || $2 ELSE l.live END) at) n)
	RETURNING b.used, b.taken`

// The window is touched only where the key is admitted.
var findAndReserve = pgdb.Written(`
	WITH k AS (` + found + `$5),
	reserved AS (` + strings.NewReplacer(
	"ALLOWED", `SELECT FROM k WHERE `+admitting("$6", "$7"),
	"SKEW", strconv.FormatInt(ratelimit.Skew.Microseconds(), 10),
).Replace(reserving) + `)
	SELECT k.*, coalesce(reserved.used, '{}') AS used, coalesce(reserved.taken, false) AS taken
	FROM k LEFT JOIN reserved ON true`)

// Reserve implements ports.Admissions in one statement. Where it is sent again, because the connection was lost, the request may
// count twice.
func (a Admissions) Reserve(ctx context.Context, r ports.Reservation) (ports.Admission, ratelimit.Decision, error) {
	type row struct {
		admission
		Used  pq.Int64Array `db:"used"`
		Taken bool          `db:"taken"`
	}
	got, err := pgdb.One[row](ctx, a.db.View(), findAndReserve, bucketOf(r.Credential.ID, r.Class), r.Now.UnixMicro(),
		r.Limit.Period.Microseconds(), r.Limit.Count, r.Credential.ID, r.Credential.Hash[:], inet(r.Client))
	if err != nil || !got.Key.Admits(r.Credential.Hash, r.Client, r.Now) {
		return got.port(), ratelimit.Decision{}, err
	}
	var w ratelimit.Window
	for _, at := range got.Used {
		w.Used = append(w.Used, time.UnixMicro(at).UTC())
	}
	return got.port(), w.Decision(r.Limit, got.Taken, r.Now.Truncate(time.Microsecond)), nil
}
