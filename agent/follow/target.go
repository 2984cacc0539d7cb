package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Lines lead to the servers that databases follow.
type Lines interface {
	// Open makes the line of an operation, or has it lead to another peer, and returns how PostgreSQL connects to it.
	Open(ctx context.Context, op id.OperationID, d ledger.Database, p command.Peer) (conninfo string, err error)
	// Failure is why the last try to get through has failed; nil: it has not. A *command.Refusal is what the other server says.
	Failure(op id.OperationID) error
	// Close ends the line.
	Close(ctx context.Context, op id.OperationID) error
}

// Target has databases follow those of other servers.
type Target struct {
	ledger *ledger.Ledger
	db     *sql.DB // maintenance database
	lines  Lines

	mu  sync.Mutex
	led map[id.OperationID]string // what this process has told the subscriptions of

	revived map[id.OperationID]revival
}

// NewTarget registers the commands, and what undoes them.
func NewTarget(l *ledger.Ledger, lines Lines) *Target {
	x := &Target{ledger: l, db: l.DB(), lines: lines, led: map[id.OperationID]string{}, revived: map[id.OperationID]revival{}}
	ledger.On(l, x.follow)
	ledger.On(l, x.take)
	l.BeforeJobs(x.undo)
	return x
}

// following is a row of the ledger.
type following struct {
	database string
	back     pq.StringArray
	reached  sql.NullString
}

func (x *Target) followingOf(ctx context.Context, op string) (f following, found bool, err error) {
	const query = "SELECT database_id, back, reached::text FROM ledger.following WHERE operation_id = $1"
	err = x.db.QueryRowContext(ctx, query, op).Scan(&f.database, &f.back, &f.reached)
	if errors.Is(err, sql.ErrNoRows) {
		return f, false, nil
	}
	return f, err == nil, err
}

// follow makes the subscription, and says how far it is.
func (x *Target) follow(ctx context.Context, e protocol.Command, c command.Follow) (report command.FollowReport, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err == nil {
		err = x.ledger.Moves(ctx, e.OperationID, d)
	}
	if err != nil {
		return report, err
	}
	f, found, err := x.followingOf(ctx, e.OperationID)
	if err == nil && !found {
		f, err = x.intend(ctx, e.OperationID, d)
	}
	if err != nil {
		return report, err
	}
	if f.reached.Valid {
		return command.FollowReport{State: command.FollowedNear}, nil
	}
	op := id.OperationID(e.OperationID)
	conninfo, err := x.lines.Open(ctx, op, d, c.Peer)
	if err != nil {
		return report, err
	}
	if err := x.subscribe(ctx, op, d, f, conninfo); err != nil {
		return x.orFailed(ctx, e, err)
	}
	report, err = x.standing(ctx, op, d, conninfo)
	if err != nil {
		return x.orFailed(ctx, e, err)
	}
	if report.State == command.FollowFailed {
		return ledger.Conclude(ctx, x.ledger, e, report, crash.FollowReply)
	}
	return report, nil
}

// orFailed is a report that says so where the other server has refused, and the error otherwise: then it may work later.
func (x *Target) orFailed(ctx context.Context, e protocol.Command, err error) (command.FollowReport, error) {
	var no *command.Refusal
	if !errors.As(x.lines.Failure(id.OperationID(e.OperationID)), &no) || no.Reason == command.ReasonUnavailable {
		return command.FollowReport{}, ledger.Unavailable("the other server is not reached; send the command again", err)
	}
	report := command.FollowReport{State: command.FollowFailed, Reason: no.Reason, Message: no.Message}
	return ledger.Conclude(ctx, x.ledger, e, report, crash.FollowReply)
}

// aside are what keeps a worker from applying changes as they were made, and what puts that back afterwards: triggers that fire
// for what is replicated, whose effects come by themselves, and row security that holds for owners too.
const aside = `SELECT format('ALTER TABLE %I.%I DISABLE TRIGGER %I', n.nspname, c.relname, t.tgname),
		format('ALTER TABLE %I.%I ENABLE %s TRIGGER %I', n.nspname, c.relname,
			CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END, t.tgname)
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE t.tgenabled IN ('A', 'R') AND NOT t.tgisinternal
	UNION ALL SELECT format('ALTER TABLE %I.%I NO FORCE ROW LEVEL SECURITY', n.nspname, c.relname),
		format('ALTER TABLE %I.%I FORCE ROW LEVEL SECURITY', n.nspname, c.relname)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relforcerowsecurity ORDER BY 2`

// intend notes what is to be put back. Nobody but the agent is in the database.
func (x *Target) intend(ctx context.Context, op string, d ledger.Database) (f following, err error) {
	f.database, f.back = d.ID, pq.StringArray{}
	err = x.inside(ctx, d.Name, func(db *sql.DB) error {
		return pg.Each(ctx, db, func(rows *sql.Rows) error {
			var away, back string
			err := rows.Scan(&away, &back)
			f.back = append(f.back, back)
			return err
		}, aside)
	})
	if err != nil {
		return f, err
	}
	const row = "INSERT INTO ledger.following (operation_id, database_id, back) VALUES ($1, $2, $3)"
	if _, err := x.db.ExecContext(ctx, row, op, d.ID, f.back); err != nil {
		return f, err
	}
	crash.Point(crash.SubscribeIntended)
	return f, nil
}

// subscribe makes the subscription, unless it stands. A change that cannot be applied ends it, and is not tried for ever.
func (x *Target) subscribe(ctx context.Context, op id.OperationID, d ledger.Database, f following, conninfo string) error {
	stands, err := x.subscribed(ctx, op)
	if err != nil {
		return err
	}
	if stands {
		return x.lead(ctx, op, d, conninfo)
	}
	name := pg.Ident(NameOf(op))
	return x.inside(ctx, d.Name, func(db *sql.DB) error {
		away, err := pg.Column(ctx, db, "SELECT a.away FROM ("+aside+") a (away, back)")
		if err != nil {
			return err
		}
		err = pg.Atomically(ctx, db, append(away, "CREATE SUBSCRIPTION "+name+" CONNECTION "+pg.Quote(conninfo)+
			" PUBLICATION "+name+" WITH (create_slot = false, slot_name = "+pg.Quote(NameOf(op))+
			", copy_data = false, disable_on_error = true, origin = any)")...)
		if err == nil {
			crash.Point(crash.SubscribeMade)
		}
		return err
	})
}

// lead tells the subscription where the line is, which may be elsewhere since the agent was started. Where it is not, that
// changes nothing.
func (x *Target) lead(ctx context.Context, op id.OperationID, d ledger.Database, conninfo string) error {
	x.mu.Lock()
	known := x.led[op] == conninfo
	x.mu.Unlock()
	if known {
		return nil
	}
	alter := "ALTER SUBSCRIPTION " + pg.Ident(NameOf(op)) + " CONNECTION " + pg.Quote(conninfo)
	err := x.inside(ctx, d.Name, func(db *sql.DB) error { return pg.Atomically(ctx, db, alter) })
	if err == nil {
		x.mu.Lock()
		x.led[op] = conninfo
		x.mu.Unlock()
	}
	return err
}

func (x *Target) subscribed(ctx context.Context, op id.OperationID) (bool, error) {
	return pg.One[bool](ctx, x.db, "SELECT EXISTS (SELECT FROM pg_subscription WHERE subname = $1)", NameOf(op))
}

const (
	// nearBytes of the other server's log are read and applied in much less than a second.
	nearBytes = 1 << 20
	// nearTime is how long ago that must have been seen.
	nearTime = 15 * time.Second
)

// standing is how far the subscription is.
func (x *Target) standing(
	ctx context.Context, op id.OperationID, d ledger.Database, conninfo string,
) (r command.FollowReport, err error) {
	const query = `SELECT s.subenabled, t.pid IS NOT NULL, coalesce(greatest(t.received_lsn, t.latest_end_lsn), '0/0')::text,
			coalesce(t.last_msg_receipt_time > clock_timestamp() - $2 * interval '1 second', false)
		FROM pg_subscription s LEFT JOIN pg_stat_subscription t ON t.subid = s.oid AND t.relid IS NULL WHERE s.subname = $1`
	var enabled, works, lately bool
	var at string
	err = x.db.QueryRowContext(ctx, query, NameOf(op), nearTime.Seconds()).Scan(&enabled, &works, &at, &lately)
	goesOn := true
	if err == nil && !enabled {
		goesOn, err = x.revive(ctx, op, d)
	}
	switch {
	case err != nil:
		return r, err
	case !goesOn:
		return command.FollowReport{
			State: command.FollowFailed, Reason: command.ReasonFailed,
			Message: "a change of the database could not be repeated at the new server: a constraint there refused it, or a table is " +
				"not as it was when the move began",
		}, nil
	}
	end, err := endOf(ctx, conninfo)
	if err != nil {
		return r, err
	}
	r.State = command.Following
	r.Behind, err = pg.One[int64](ctx, x.db, "SELECT greatest($1::pg_lsn - $2::pg_lsn, 0)::bigint", end, at)
	if err == nil && works && lately && r.Behind <= nearBytes {
		r.State = command.FollowedNear
	}
	return r, err
}

// inside does something with a connection to a customer's database.
func (x *Target) inside(ctx context.Context, database string, do func(*sql.DB) error) error {
	return x.ledger.Inside.Run(ctx, func() error {
		db, err := x.ledger.Server().Open(database)
		if err != nil {
			return err
		}
		return errors.Join(do(db), db.Close())
	})
}

// undo removes the subscription of an operation that is closed. The database goes afterwards.
func (x *Target) undo(ctx context.Context, operation string) error {
	f, found, err := x.followingOf(ctx, operation)
	if err != nil || !found {
		return err
	}
	op := id.OperationID(operation)
	d, known, err := x.ledger.Database(ctx, f.database)
	if err == nil && known && d.InService() {
		err = x.unsubscribe(ctx, op, d)
	}
	if err == nil {
		err = x.lines.Close(ctx, op)
	}
	if err != nil {
		return fmt.Errorf("end a subscription: %w", err)
	}
	crash.Point(crash.SubscribeDropped)
	x.mu.Lock()
	delete(x.led, op)
	delete(x.revived, op)
	x.mu.Unlock()
	return pg.Atomically(ctx, x.db, "DELETE FROM ledger.following WHERE operation_id = "+pg.Quote(operation))
}

// unsubscribe drops the subscription, with further statements in the same transaction. The other server is not asked: it drops
// its slot itself.
func (x *Target) unsubscribe(ctx context.Context, op id.OperationID, d ledger.Database, more ...string) error {
	stands, err := x.subscribed(ctx, op)
	if err != nil {
		return err
	}
	if name := pg.Ident(NameOf(op)); stands {
		more = append([]string{
			"ALTER SUBSCRIPTION " + name + " DISABLE", "ALTER SUBSCRIPTION " + name + " SET (slot_name = NONE)",
			"DROP SUBSCRIPTION " + name,
		}, more...)
	}
	return x.inside(ctx, d.Name, func(db *sql.DB) error { return pg.Atomically(ctx, db, more...) })
}
