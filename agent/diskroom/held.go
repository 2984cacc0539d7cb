package diskroom

import (
	"context"
	"database/sql"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

// Held is what holds room on the server's disks for one purpose: dump, copy, upload, and ready for copies that have not become a
// database yet.
type Held struct {
	For   string
	Count int
	Bytes int64 // what was promised, or used where that is more; not known of those that are ready
}

// HeldReady is the purpose of copies that are ready.
const HeldReady = "ready"

// HeldFor are the purposes.
var HeldFor = []string{"dump", "copy", "upload", HeldReady}

// Held says what holds room. Each purpose is there, if with nothing.
func (x *Room) Held(ctx context.Context) (all []Held, err error) {
	const query = `SELECT purpose, count(held), coalesce(sum(held), 0)::bigint FROM unnest($1::text[]) AS p (purpose)
		LEFT JOIN (
			SELECT r.purpose, greatest(r.bytes, r.used) FROM ledger.reservation r
			WHERE NOT r.waiting AND (r.kept_until IS NULL OR r.kept_until > clock_timestamp())
			UNION ALL SELECT 'ready', 0 FROM ledger.copy WHERE ready_at IS NOT NULL
		) AS h (purpose, held) USING (purpose) GROUP BY purpose`
	db, err := x.open()
	if err != nil {
		return nil, err
	}
	err = pg.Each(ctx, db, func(rows *sql.Rows) error {
		var h Held
		err := rows.Scan(&h.For, &h.Count, &h.Bytes)
		all = append(all, h)
		return err
	}, query, pq.Array(HeldFor))
	return all, err
}
