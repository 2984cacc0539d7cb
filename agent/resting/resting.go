// Package resting keeps those out for a while who come back and take again what they were ended for. Otherwise they take nearly
// as much as before, and the looks at them and their log-ins cost everybody.
package resting

import (
	"context"
	"database/sql"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
)

const (
	// Whoever is ended again after afterTime, and within backTime of the first time, rests for restTime. What ends within afterTime
	// is one burst.
	afterTime = time.Second
	backTime  = 5 * time.Minute
	restTime  = time.Minute
	// noteTime bounds what is done about one of them: a customer's lock can be in the way of it.
	noteTime = 5 * time.Second
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

// Rests remembers who was ended.
type Rests struct {
	db     *sql.DB
	log    *zap.Logger
	seldom loop.Seldom // for what a customer can bring about again and again
	notes  chan note
	first  map[string]time.Time // when somebody was ended for the first time, of late
}

type note struct {
	who string
	at  time.Time
}

// New makes rests in the maintenance database.
func New(db *sql.DB, log *zap.Logger) *Rests {
	return &Rests{db: db, log: log, notes: make(chan note, 64), first: make(map[string]time.Time)}
}

// Ended notes that sessions or clients of a login, or of a database, were ended for what they take. It waits for nobody: with too
// many notes at a time one is lost, and who comes back is ended again. It is safe for concurrent use.
func (r *Rests) Ended(who string) {
	select {
	case r.notes <- note{who, time.Now()}:
	default:
	}
}

// Run has those rest who come back, until ctx ends.
func (r *Rests) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-r.notes:
			if r.comesBack(n.who, n.at) {
				r.rest(ctx, n.who)
			}
		}
	}
}

func (r *Rests) rest(ctx context.Context, who string) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if _, err := r.db.ExecContext(ctx, rest, who, restTime.Seconds()); err != nil {
		r.seldom.Warn(r.log, "failed"+who, "who came back and was ended again could not be kept out", zap.String("who", who),
			zap.Error(err))
		return
	}
	r.seldom.Warn(r.log, who, "who came back and was ended again is kept out of the database for a while", zap.String("who", who))
}

func (r *Rests) comesBack(who string, now time.Time) bool {
	maps.DeleteFunc(r.first, func(_ string, first time.Time) bool { return now.Sub(first) > backTime })
	first, known := r.first[who]
	if back := known && now.Sub(first) >= afterTime; back || !known {
		r.first[who] = now
		return back
	}
	return false
}
