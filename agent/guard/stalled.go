package guard

import (
	"context"
	"database/sql"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// DROP DATABASE waits until every session of the server has taken notice of it, and nothing else bounds that wait. A session does
// not while it sends a result or notifications that its client does not read, or receives a COPY that its client does not go on
// with. So one client that stands still, of whomever, keeps deletions and what removes copies from their end, for as long as it
// stands.

const (
	// stallTime is how long a session may stand still while somebody waits for all sessions. A client that works on each row that
	// it gets, or makes each one that it sends, seldom takes that long. stalledAgain is for the sessions of an account of which one
	// was ended for that within stallMemory.
	stallTime    = 10 * time.Second
	stalledAgain = time.Second
	stallMemory  = time.Hour
)

// standing are customers' sessions that wait for their client but not for a statement, and began before somebody who waits for
// all. One that sends notifications is idle.
const standing = `SELECT a.pid, a.backend_start, l.name, ` + ledger.SessionAccount + `
	FROM pg_stat_get_activity(NULL) a` + ledger.SessionOwner + `
	WHERE a.backend_type = 'client backend' AND l.oid IS NOT NULL AND a.backend_start < $1
		AND (a.wait_event = 'ClientWrite' OR a.wait_event = 'ClientRead' AND a.state = 'active')`

// stalled is such a session.
type stalled struct {
	session
	login, account string
}

// standstill is what looks have seen while somebody waits for all sessions.
type standstill struct {
	waits time.Time             // when the statement of who has waited for longest began
	since map[session]time.Time // the sessions that every look has seen standing since
	ended map[string]time.Time  // when a session of an account was ended last
}

// look notes which sessions stand still, and chooses those to end: a session that every look has seen for too long.
func (s *standstill) look(waits time.Time, now time.Time, all []stalled) (end []stalled) {
	if !waits.Equal(s.waits) {
		s.waits, s.since = waits, nil
	}
	maps.DeleteFunc(s.ended, func(_ string, ended time.Time) bool { return now.Sub(ended) >= stallMemory })
	since := make(map[session]time.Time, len(all))
	for _, x := range all {
		first, seen := s.since[x.session]
		if !seen {
			first = now
		}
		since[x.session] = first
		patience := stallTime
		if _, before := s.ended[x.account]; before {
			patience = stalledAgain
		}
		if now.Sub(first) >= patience {
			end = append(end, x)
		}
	}
	s.since = since
	for _, x := range end {
		if s.ended == nil {
			s.ended = map[string]time.Time{}
		}
		s.ended[x.account] = now
		delete(since, x.session) // it is told again where it is still there later
	}
	return end
}

// endStalled ends the sessions that stand still for too long while somebody waits for all, since then.
func (g *Guard) endStalled(ctx context.Context, tx *sql.Tx, waits time.Time) error {
	var all []stalled
	err := pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var x stalled
		err := rows.Scan(&x.pid, &x.start, &x.login, &x.account)
		all = append(all, x)
		return err
	}, standing, waits)
	if err != nil {
		return err
	}
	for _, x := range g.still.look(waits, time.Now(), all) {
		if err := terminate(ctx, tx, x.session); err != nil {
			return err
		}
		g.ended[forStalled].Add(1)
		g.seldom.Warn(g.log, "stalled"+x.login, "a session was ended whose client stood still while the drop of a database waited",
			zap.String("login", x.login), zap.String("account", x.account))
	}
	return nil
}
