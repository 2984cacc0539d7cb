package logins

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// A direct log-in that has passed its check before a change of the password, or stood still before its last message, ends as a
// session after it, at a moment that the client chooses: within authentication_timeout, or, where it asks for post_auth_delay,
// within some 36 minutes. Before the sweep ends that session it may have set a password of its own, and be gone again. So the
// log-ins that stand at the end of a change are written down; once the last of them is no more, what is stored is compared.

// watchParked writes down who stands in the middle of a log-in, of whatever role: PostgreSQL does not tell.
func (x *Logins) watchParked(ctx context.Context, l loginRow) error {
	parked, err := x.ledger.AwaitArriving(ctx)
	if err != nil || !l.exists {
		return err
	}
	defer x.wakeSweep()
	return pg.Atomically(ctx, x.db, ledger.FlushLater, l.rowStatement("parked = "+orNull(parked)))
}

// orNull is the text[] of a list; null where that is empty.
func orNull(list []string) string {
	if len(list) == 0 {
		return "NULL"
	}
	value, _ := pq.StringArray(list).Value() // has no error
	text, _ := value.(string)
	return pg.Quote(text)
}

// releasable are the logins of which nobody stands in the middle of a log-in any more, nor has come of that.
const releasable = `SELECT p.database_id, p.name FROM ledger.role p
	WHERE p.parked IS NOT NULL AND NOT EXISTS (SELECT FROM (` + ledger.Arriving + `) l WHERE l.virtualtransaction = ANY (p.parked))
	  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE ` + ofBefore + `)
	  AND ($2 = '' OR p.database_id = $2 AND p.name = $3)`

// releaseParked ends the watch over the logins that are releasable.
func (x *Logins) releaseParked(ctx context.Context) error {
	var all [][2]string
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var one [2]string
		err := rows.Scan(&one[0], &one[1])
		all = append(all, one)
		return err
	}, releasable, pq.Array([]string(nil)), "", "")
	if err != nil {
		return err
	}
	for _, one := range all {
		err = errors.Join(err, x.release(ctx, one[0], one[1]))
	}
	return err
}

// release ends the watch over one login, unless a command has changed it meanwhile. One whose database a command is at work on
// waits for the next round.
func (x *Logins) release(ctx context.Context, databaseID, name string) error {
	brief, cancel := context.WithTimeout(ctx, sweepPause)
	defer cancel()
	unlock, err := x.ledger.Locks.Take(brief, ledger.DatabaseResource(databaseID))
	if err != nil {
		return ctx.Err()
	}
	defer unlock()
	still, err := pg.Column(ctx, x.db, "SELECT name FROM ("+releasable+") l", pq.Array([]string(nil)), databaseID, name)
	if err != nil || len(still) == 0 {
		return err
	}
	l, err := x.anyLogin(ctx, databaseID, name)
	if err != nil {
		return err
	}
	const query = `SELECT EXISTS (SELECT FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.name = $1 AND NOT r.rolsuper AND p.verifier_mark IS DISTINCT FROM pooler.verifier_mark(p.name))`
	another, err := pg.One[bool](ctx, x.db, query, name)
	switch {
	case err != nil:
		return err
	case another:
		return x.takeAway(ctx, l)
	}
	return pg.Atomically(ctx, x.db, l.rowStatement("parked = NULL"))
}

// takeAway leaves a login without a password, where nobody knows whose it is that it has, and ends what has got in with that.
// The login is seen as drifted, and a rotation repairs it.
func (x *Logins) takeAway(ctx context.Context, l loginRow) error {
	x.log.Warn("a session of an old password has set another one, which is taken away", zap.String("login", l.name),
		zap.String("database", l.db.Name))
	gone := l.rowStatement("verifier_mark = NULL, changed_at = clock_timestamp()")
	if err := x.forced(ctx, l, make(endedSessions), "ALTER ROLE "+pg.Ident(l.name)+" PASSWORD NULL", gone); err != nil {
		return err
	}
	if err := x.markChanged(ctx, l); err != nil {
		return err
	}
	if err := x.watchParked(ctx, l); err != nil {
		return err
	}
	_, err := x.endEarlier(ctx, l)
	return err
}
