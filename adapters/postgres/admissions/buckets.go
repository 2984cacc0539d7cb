package admissions

import (
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// What follows is ratelimit.Bucket in SQL; the conformance suite compares the two. Times are in microseconds. Each OFFSET 0 keeps
// the planner from writing one expression into the next, over and over.

// settled is Bucket.settle for the row b: FROM items, of which s has tat and free afterwards. The words in capital letters stand
// for expressions.
const settled = `
	(SELECT CASE WHEN b.tat > NOW + PERIOD + SKEW THEN NOW + PERIOD ELSE b.tat END AS tat OFFSET 0) c
	CROSS JOIN LATERAL (SELECT int8multirange(int8range(NOW, greatest(NOW, c.tat))) AS open OFFSET 0) o
	CROSS JOIN LATERAL (SELECT b.free * o.open AS free, int8multirange(int8range(REST_FROM, REST_TO)) * o.open AS rest OFFSET 0) f
	CROSS JOIN LATERAL (SELECT CASE WHEN REST_TO = c.tat OR (SELECT count(*) FROM unnest(f.free)) < MOST_FREE
		THEN f.free + f.rest ELSE f.free END AS free OFFSET 0) j
	CROSS JOIN LATERAL (SELECT CASE WHEN upper(j.free) = c.tat THEN (SELECT max(lower(r)) FROM unnest(j.free) r) ELSE c.tat END
		AS tat OFFSET 0) e
	CROSS JOIN LATERAL (SELECT e.tat, j.free * int8multirange(int8range(NULL, e.tat)) AS free OFFSET 0) s`

// leasing is Bucket.Lease: $1 is the bucket, $2 now, $3 the interval, $4 the period, $5 how many requests are asked for, and from
// $6 to $7 goes back. The row is written in any case, so that the returned state is the one that decided, however many compete.
const leasing = `
	INSERT INTO rate_buckets AS b (bucket, tat, granted, taken)
	SELECT $1::text, upper(g), g, true
	FROM (SELECT int8range($2::bigint, $2 + least($5::bigint, greatest(1, $4::bigint / $3::bigint / SHARE)) * $3) AS g) first
	WHERE EXISTS (ALLOWED)
	ON CONFLICT (bucket) DO UPDATE SET (tat, free, granted) = (
		SELECT CASE WHEN h.hole IS NULL THEN greatest(s.tat, upper(g.granted)) ELSE s.tat END,
			s.free - int8multirange(g.granted), g.granted
		FROM SETTLED
		CROSS JOIN LATERAL (SELECT CASE WHEN NOT isempty(s.free) THEN
			(SELECT r FROM unnest(s.free) r WHERE lower(r) + $3 <= upper(r) ORDER BY r LIMIT 1) END AS hole OFFSET 0) h
		CROSS JOIN LATERAL (SELECT coalesce(lower(h.hole), greatest(s.tat, $2)) AS low,
			least(upper(h.hole), $2 + $4) AS high OFFSET 0) m
		CROSS JOIN LATERAL (SELECT int8range(m.low, m.low + $3 * greatest(0, least($5,
			greatest(1, ($2 + $4 - greatest(s.tat, $2)) / $3 / SHARE), (m.high - m.low) / $3))) AS granted OFFSET 0) g)
	RETURNING b.tat, coalesce(lower(b.granted), 0) AS lower, coalesce(upper(b.granted), 0) AS upper`

// leaseWhere is a statement that leases where the query allowed returns a row.
func leaseWhere(allowed string) string {
	return strings.NewReplacer(
		"ALLOWED", allowed, "SETTLED", settledWith("$2", "$4", "$6::bigint", "$7::bigint"), "SHARE", strconv.Itoa(ratelimit.Share),
	).Replace(leasing)
}

func settledWith(now, period, restFrom, restTo string) string {
	return strings.NewReplacer(
		"NOW", now, "PERIOD", period, "REST_FROM", restFrom, "REST_TO", restTo,
		"SKEW", strconv.FormatInt(ratelimit.Skew.Microseconds(), 10), "MOST_FREE", strconv.Itoa(ratelimit.MostFree),
	).Replace(settled)
}

// leaseArguments are those of leasing.
func leaseArguments(bucket string, l ratelimit.Limit, a ratelimit.Ask, now time.Time) []any {
	from, to := micros(a.Rest)
	return []any{bucket, now.UnixMicro(), l.Step().Microseconds(), l.Period.Microseconds(), a.Requests, from, to}
}

func micros(s ratelimit.Stretch) (from, to int64) {
	if s.Empty() {
		return 0, 0
	}
	return s.From.UnixMicro(), s.To.UnixMicro()
}

// grant is the result of leasing.
type grant struct {
	TAT   int64 `db:"tat"`
	Lower int64 `db:"lower"`
	Upper int64 `db:"upper"`
}

func (g grant) granted() ratelimit.Grant {
	out := ratelimit.Grant{TAT: time.UnixMicro(g.TAT).UTC()}
	if g.Lower < g.Upper {
		out.Stretch = ratelimit.Stretch{From: time.UnixMicro(g.Lower).UTC(), To: time.UnixMicro(g.Upper).UTC()}
	}
	return out
}

func bucketOf(k id.KeyID, c ratelimit.Class) string { return "key/" + string(k) + "/" + string(c) }
