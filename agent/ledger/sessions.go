package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// AgentsOwn are the sessions of the agent, of its dumps and of its changes of extensions, as a condition on pg_stat_activity a.
const AgentsOwn = `a.usename = '` + setup.AgentLogin + `' OR a.usename ~ '` + setup.JobLogins + `'`

// ForeignSessions selects the sessions of a database, or as one of its logins anywhere, that are neither the agent's nor an
// administrator's.
const ForeignSessions = ` FROM pg_stat_activity a LEFT JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.backend_type = 'client backend' AND (` + AgentsOwn + `) IS NOT TRUE
	  AND r.rolsuper IS DISTINCT FROM true
	  AND (a.datname = $1 OR a.usesysid IN (SELECT p.oid FROM ledger.role p WHERE p.database_id = $2))`

// SessionOwner joins a session a with its login r, its database b, their rows l and c where it is a customer's login or that of a
// copy, and d: the database whose it is. That is the one that its login was made for or, in a copy, that this is a copy of; any
// other session, as a job's, belongs to the database that it is in. A worker of autovacuum has no login.
const SessionOwner = `
	LEFT JOIN pg_roles r ON r.oid = a.usesysid
	LEFT JOIN pg_database b ON b.oid = a.datid
	LEFT JOIN ledger.role l ON l.oid = a.usesysid
	LEFT JOIN ledger.copy c ON c.name = coalesce(r.rolname, b.datname)
	LEFT JOIN ledger.database h ON h.oid = a.datid
	LEFT JOIN ledger.database d ON d.id = coalesce(l.database_id, c.database_id, h.id)`

// SessionAccount is the account of a SessionOwner or, where nobody has said it, the database; null where there is none.
const SessionAccount = `coalesce(nullif(d.account_id, ''), d.id)`

// The pause between two looks at sessions; a terminated session needs some milliseconds to end. The longer they have been waited
// for, the longer it is, an eighth of that time: so the end of a wait is seen late by no more.
const (
	sessionPause    = 500 * time.Microsecond
	maxSessionPause = 20 * time.Millisecond
)

// lateSession is longer than PostgreSQL takes from admitting a log-in to showing the session.
const lateSession = 50 * time.Millisecond

// arrivingPause is between two queries of arriving log-ins. Each locks all of PostgreSQL's lock partitions.
const arrivingPause = 2 * time.Millisecond

// Arriving are the virtual transactions of log-ins that PostgreSQL does not show as sessions yet: those of a list, or all. It
// holds for PostgreSQL 16, where a log-in is one transaction from before the password is asked for until after pg_stat_activity
// has the session's user.
const Arriving = `SELECT l.virtualtransaction FROM pg_locks l
	WHERE l.locktype = 'virtualxid' AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1)) AND NOT EXISTS (
		SELECT FROM pg_stat_activity a WHERE a.pid = l.pid AND (a.usesysid IS NOT NULL OR a.backend_type <> 'client backend'))`

// EndSessions terminates customers' sessions of a database until none is left, including those that were about to begin. Close
// the logins first.
func (l *Ledger) EndSessions(ctx context.Context, d Database) error {
	if err := l.EndVisible(ctx, d); err != nil {
		return err
	}
	if _, err := l.AwaitArriving(ctx); err != nil {
		return err
	}
	return l.EndVisible(ctx, d)
}

// AwaitArriving returns when every log-in that PostgreSQL admitted before the call is visible as a session, so that the caller
// can look again. It waits no longer than lateSession for log-ins that make no progress, and returns their virtual
// transactions.
func (l *Ledger) AwaitArriving(ctx context.Context) (parked []string, err error) {
	parked, err = pg.Column(ctx, l.db, Arriving, pq.Array(parked))
	for began := time.Now(); err == nil && len(parked) > 0 && time.Since(began) < lateSession; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(arrivingPause):
		}
		parked, err = pg.Column(ctx, l.db, Arriving, pq.Array(parked))
	}
	return parked, err
}

// EndVisible terminates such sessions until none is left of the database's own logins, nor of others that were there when it
// began: an owner can let in logins of other accounts, and where they do not come through the pooler, nothing but the database
// itself keeps them from coming back as fast as they are ended.
func (l *Ledger) EndVisible(ctx context.Context, d Database) error {
	const query = `SELECT count(s.ended) FILTER (WHERE s.own OR s.since < clock_timestamp() - $3 * interval '1 second') FROM (
		SELECT pg_terminate_backend(a.pid) AS ended, a.backend_start AS since,
			a.usesysid IN (SELECT p.oid FROM ledger.role p WHERE p.database_id = $2) AS own` + ForeignSessions + `) s`
	began := time.Now()
	return l.Until(ctx, "sessions are still open", func() (int, error) {
		return pg.One[int](ctx, l.db, query, d.Name, d.ID, time.Since(began).Seconds())
	})
}

// Until repeats its look until nothing is left.
func (l *Ledger) Until(ctx context.Context, what string, look func() (int, error)) error {
	for began := time.Now(); ; {
		n, err := look()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d %s: %w", n, what, ctx.Err())
		case <-time.After(min(max(time.Since(began)/8, sessionPause), maxSessionPause)):
		}
	}
}
