// Package resting keeps those out for a while who come back and take again what they were ended for. Otherwise they take nearly
// as much as before, and the looks at them and their log-ins cost everybody.
package resting

import (
	"context"
	"database/sql"
	"maps"
	"sync"
	"time"
)

const (
	// Whoever is ended again after afterTime, and within backTime of the first time, rests for restTime. What ends within afterTime
	// is one burst.
	afterTime = time.Second
	backTime  = 5 * time.Minute
	restTime  = time.Minute
)

// rest lets nobody of a database pass the pooler for a while, and ends the sessions of its logins. The database is named, or a
// login of it.
const rest = `WITH resting AS (
			SELECT DISTINCT d.id, d.name FROM ledger.database d LEFT JOIN ledger.role l ON l.database_id = d.id
			WHERE $1 IN (d.name, l.name)),
		noted AS (INSERT INTO pooler.resting SELECT name, now() + make_interval(secs => $2) FROM resting
			ON CONFLICT (database) DO UPDATE SET until = excluded.until RETURNING 1)
	SELECT count(pg_terminate_backend(a.pid))
	FROM noted, resting, ledger.role l, pg_stat_get_activity(NULL) a WHERE l.database_id = resting.id AND a.usesysid = l.oid`

// Rests remembers who was ended. It is safe for concurrent use.
type Rests struct {
	db *sql.DB

	mu    sync.Mutex
	first map[string]time.Time // when somebody was ended for the first time, of late
}

// New makes rests in the maintenance database.
func New(db *sql.DB) *Rests { return &Rests{db: db, first: make(map[string]time.Time)} }

// Ended notes that sessions or clients of a login, or of a database, were ended for what they take. It reports whether they came
// back for it, and everybody of the database rests now.
func (r *Rests) Ended(ctx context.Context, who string, now time.Time) (rests bool, err error) {
	if !r.comesBack(who, now) {
		return false, nil
	}
	_, err = r.db.ExecContext(ctx, rest, who, restTime.Seconds())
	return true, err
}

func (r *Rests) comesBack(who string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.first, func(_ string, first time.Time) bool { return now.Sub(first) > backTime })
	first, known := r.first[who]
	if back := known && now.Sub(first) >= afterTime; back || !known {
		r.first[who] = now
		return back
	}
	return false
}
