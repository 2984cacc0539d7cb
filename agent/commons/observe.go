package commons

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// class says which rules a session is under.
type class int

const (
	administrator class = iota // and whatever else is no customer's: never ended
	dump                       // the agent's, for one dump or one change of an extension
	copying                    // in a copy: it runs a customer's code, and the backup or restore has a time limit
	customer
)

// Keepers are what can keep transaction IDs from being reused: sessions by their class, what no session holds, and the databases
// in which old rows are not frozen yet.
var Keepers = []string{"administrator", "dump", "copy", "customer", "prepared", "slot", "database"}

const (
	keptPrepared = "prepared"
	keptSlot     = "slot"
	keptDatabase = "database"
)

func (c class) String() string { return Keepers[c] }

// session is one of PostgreSQL's sessions that does something or has a transaction open.
type session struct {
	pid             int
	began           time.Time
	login, database string
	// account is that of the login or, where it has none, of the database; where nobody has said it, the database's ID.
	account string
	class   class
	// open is for how long its transaction is, or its statement runs. What it holds it does not hold for longer.
	open time.Duration
	// held is how many transaction IDs have been taken since the oldest that it keeps.
	held int64
}

// suspect is a session with what samples have shown of it.
type suspect struct {
	session
	took      int // transaction IDs that count for it
	notifies  int // samples in which it had notifications to send
	writes    int // samples in which it wrote a shared catalog
	multixact int // samples in which it waited for the making of a multixact ID
}

// state is what a look has found.
type state struct {
	next, nextMultixact     uint32
	oldest, forced          int64 // the age of the oldest ID that a database may hold, and that from which on autovacuum must freeze
	oldestMulti, forceMulti int64
	prepared, slot          int64
	queue                   float64
	catalogs                int64 // bytes
	sessions                []session
	suspects                []suspect
	sampled                 time.Duration // for how long samples were taken

	// What has happened since the look before: seconds, IDs and bytes; and for how long the queue has not been empty.
	elapsed            time.Duration
	taken, takenMultis uint32
	growth             int64
	filling            time.Duration
}

// age of an ID is how many have been taken since. That of 3, the first one, says which is the next, modulo 2^32.
const figuresQuery = `SELECT age('3'::xid)::bigint, d.oldest, current_setting('autovacuum_freeze_max_age')::bigint,
		d.next_multi, d.oldest_multi, current_setting('autovacuum_multixact_freeze_max_age')::bigint,
		coalesce((SELECT max(age(p.transaction)) FROM pg_prepared_xact() p), 0),
		coalesce((SELECT max(greatest(age(s.xmin), age(s.catalog_xmin))) FROM pg_get_replication_slots() s), 0),
		pg_notification_queue_usage(), pg_tablespace_size(1664)
	FROM (SELECT max(age(datfrozenxid))::bigint AS oldest, max(mxid_age(datminmxid))::bigint AS oldest_multi,
			max(datminmxid::text::bigint + mxid_age(datminmxid)) AS next_multi FROM pg_database) d`

// A copy has a login of its name. VACUUM keeps nothing back, whatever its session shows.
const sessionColumns = `a.pid, a.backend_start, coalesce(r.rolname, ''), coalesce(b.datname, ''),
		coalesce(` + ledger.SessionAccount + `, ''),
		CASE WHEN l.oid IS NOT NULL THEN 3 WHEN c.name = r.rolname THEN 2 WHEN r.rolname ~ '` + setup.JobLogins + `' THEN 1 ELSE 0 END,
		coalesce(extract(epoch FROM clock_timestamp() -
			least(a.xact_start, CASE WHEN a.state = 'active' THEN a.query_start END)), 0)::float8,
		CASE WHEN v.pid IS NULL THEN greatest(age(a.backend_xid), age(a.backend_xmin), 0) ELSE 0 END`

const sessionTables = ` FROM pg_stat_get_activity(NULL) a
	LEFT JOIN pg_stat_get_progress_info('VACUUM') v ON v.pid = a.pid` + ledger.SessionOwner

const sessionsQuery = `SELECT ` + sessionColumns + sessionTables + `
	WHERE a.pid <> pg_backend_pid() AND (a.state = 'active' OR a.xact_start IS NOT NULL
		OR a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL)`

func (s *session) fields(more ...any) []any {
	return append([]any{&s.pid, &s.began, &s.login, &s.database, &s.account, &s.class, (*seconds)(&s.open), &s.held}, more...)
}

// seconds scans a number of seconds.
type seconds time.Duration

// Scan implements sql.Scanner.
func (s *seconds) Scan(value any) error {
	if n, ok := value.(float64); ok {
		*s = seconds(n * float64(time.Second))
	}
	return nil
}

// observe fills in what one moment shows.
func observe(ctx context.Context, q pg.Querier, s *state) error {
	var next, multi int64
	err := q.QueryRowContext(ctx, figuresQuery).Scan(&next, &s.oldest, &s.forced, &multi, &s.oldestMulti, &s.forceMulti,
		&s.prepared, &s.slot, &s.queue, &s.catalogs)
	if err != nil {
		return err
	}
	s.next, s.nextMultixact = uint32(next), uint32(multi) // modulo 2^32, as PostgreSQL counts
	return pg.Each(ctx, q, func(rows *sql.Rows) error {
		var one session
		err := rows.Scan(one.fields()...)
		s.sessions = append(s.sessions, one)
		return err
	}, sessionsQuery)
}

const (
	// A look takes so many samples, one after the other, but few of a busy server.
	leastSamples, mostSamples = 5, 300
	sampleTime                = 400 * time.Millisecond
)

// Who has an ID holds a lock on it, also on that of a subtransaction. Who stores something about a role or a database holds its
// lock on the shared catalog until the transaction ends, and who notifies holds one on "database 0", or waits for it.
const sampleQuery = `SELECT k.pid, age('3'::xid)::bigint, coalesce(min(age(k.transactionid)) FILTER (
			WHERE k.locktype = 'transactionid' AND k.mode = 'ExclusiveLock' AND k.granted), 2147483647)::bigint,
		bool_or(k.locktype = 'object' AND k.database = 0 AND k.classid = 1262 AND k.objid = 0),
		bool_or(k.locktype = 'relation' AND k.database = 0 AND k.mode = 'RowExclusiveLock'),
		bool_or(k.locktype = 'transactionid' AND a.wait_event LIKE 'MultiXact%') IS TRUE
	FROM pg_locks k JOIN pg_stat_get_activity(NULL) a ON a.pid = k.pid
	WHERE k.pid <> pg_backend_pid() AND (k.locktype = 'transactionid' OR k.database = 0) GROUP BY 1`

// sign is what one sample shows of a session.
type sign struct {
	pid                         int
	next, age                   int64 // the next ID, and the age of the newest that the session has
	notifies, writes, multixact bool
}

// noID is the age of the newest ID of a session that has none.
const noID = 1<<31 - 1

// sample looks many times who takes IDs, notifies, or writes shared catalogs: one look shows the open transactions, and not
// whose are those of the next moment.
func (c *Commons) sample(ctx context.Context, s *state) error {
	all, began := make(map[int]*suspect), time.Now()
	var before *uint32
	for n := 0; n < leastSamples || n < mostSamples && time.Since(began) < sampleTime; n++ {
		var signs []sign
		err := pg.Each(ctx, c.db, func(rows *sql.Rows) error {
			var g sign
			err := rows.Scan(&g.pid, &g.next, &g.age, &g.notifies, &g.writes, &g.multixact)
			signs = append(signs, g)
			return err
		}, sampleQuery)
		if err != nil {
			return err
		}
		before = count(all, signs, before)
	}
	s.sampled = time.Since(began)
	return pg.Each(ctx, c.db, func(rows *sql.Rows) error {
		var x session
		err := rows.Scan(x.fields()...)
		if shown := all[x.pid]; shown != nil {
			shown.session = x
			s.suspects = append(s.suspects, *shown)
		}
		return err
	}, suspectsQuery, pq.Array(slices.Collect(maps.Keys(all))))
}

const suspectsQuery = `SELECT ` + sessionColumns + sessionTables + ` WHERE a.pid = ANY ($1)`

// count adds a sample. The transaction IDs that were taken since the sample before count for whoever has the newest of them, and
// for nobody where no session has any more. It returns which ID was the next one; before the first sample that is nil.
func count(all map[int]*suspect, signs []sign, before *uint32) (next *uint32) {
	newest, last := -1, int32(0)
	for i, g := range signs {
		if all[g.pid] == nil {
			all[g.pid] = &suspect{}
		}
		x, id := all[g.pid], uint32(g.next)
		next = &id
		x.notifies += tally(g.notifies)
		x.writes += tally(g.writes)
		x.multixact += tally(g.multixact)
		if before == nil || g.age >= noID {
			continue
		}
		if since := int32(uint32(g.next-g.age) - *before); since >= last {
			newest, last = i, since
		}
	}
	if newest >= 0 {
		all[signs[newest].pid].took += int(*next - *before)
	}
	return cmp.Or(next, before)
}

func tally(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
