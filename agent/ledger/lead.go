package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// ErrSuperseded means that another agent has taken over this server. The receiver must stop at once.
var ErrSuperseded = errors.New("another agent has taken over this server")

// leadLock is the advisory lock of the agent in charge.
const leadLock = 7450016

// Leader is the claim of an agent to its server.
type Leader struct {
	server Server
	conn   driver.Conn
}

// Lead takes charge of the server. From its first step on, no new connection of a predecessor is accepted by the ledger; then
// the predecessor's sessions are ended, including those of its dumps. A predecessor that hangs or is suspended need not
// cooperate: when it resumes, it finds its connections dead and gets ErrSuperseded. An agent of another Place that is at work
// keeps its charge: a *HeldError then.
func (s Server) Lead(ctx context.Context) (*Leader, error) {
	l := &Leader{server: s}
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	if err := l.takeOver(ctx); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

func (l *Leader) connect(ctx context.Context) error {
	config := l.server.Config(setup.MaintenanceDatabase)
	config.ApplicationName = l.server.Place.session()
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err == nil { // otherwise it is no interface that is nil
		l.conn = conn
	}
	return err
}

func (l *Leader) takeOver(ctx context.Context) error {
	if err := l.checkPrepared(ctx); err != nil {
		return err
	}
	if err := l.checkAlone(ctx); err != nil {
		return err
	}
	err := pg.Run(ctx, l.conn, "INSERT INTO ledger.agent (instance) VALUES ("+pg.Quote(l.server.Instance)+
		") ON CONFLICT (single) DO UPDATE SET instance = excluded.instance, since = now()")
	if err != nil {
		return err
	}
	crash.Point(crash.StartNamed)
	if err := l.endPredecessors(ctx); err != nil {
		return err
	}
	crash.Point(crash.StartEnded)
	if err := l.lock(ctx); err != nil {
		return err
	}
	// Nobody works on these any more.
	if err := pg.Run(ctx, l.conn, "DELETE FROM ledger.running", nameInstallation); err != nil {
		return err
	}
	crash.Point(crash.StartLocked)
	return nil
}

const (
	undefinedTable    = "42P01"
	undefinedFunction = "42883"
	invalidSchema     = "3F000"
)

// checkPrepared refuses a server that agent init has not prepared, or whose ledger is another version's, before a predecessor
// loses charge of it.
func (l *Leader) checkPrepared(ctx context.Context) error {
	err := pg.Run(ctx, l.conn, "SELECT FROM ledger.agent LIMIT 0")
	switch pg.State(err) {
	case undefinedTable, invalidSchema:
		return fmt.Errorf("%w: the maintenance database has no ledger: %w", setup.ErrUnprepared, err)
	}
	if err != nil {
		return err
	}
	format, err := number(ctx, l.conn, "SELECT number FROM ledger.format")
	if err != nil && pg.State(err) != undefinedTable {
		return err
	}
	return setup.CheckLedger(format)
}

// endPredecessors terminates every other session of the agent's login until none is left.
func (l *Leader) endPredecessors(ctx context.Context) error {
	const query = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE usename = '` + setup.AgentLogin + `' AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	for {
		n, err := number(ctx, l.conn, query)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d sessions of the agent before this one do not end: %w", n, ctx.Err())
		case <-time.After(sessionPause):
		}
	}
}

// lock takes the advisory lock. If it is taken, another agent started at the same moment and registered after us.
func (l *Leader) lock(ctx context.Context) error {
	query := fmt.Sprintf("SELECT CASE WHEN pg_try_advisory_lock(%d) THEN 1 ELSE 0 END", leadLock)
	for {
		got, err := number(ctx, l.conn, query)
		if err != nil {
			return err
		}
		if err := l.check(ctx); err != nil || got == 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(sessionPause):
		}
	}
}

// check returns ErrSuperseded if this agent is no longer in charge.
func (l *Leader) check(ctx context.Context) error {
	err := pg.Run(ctx, l.conn, l.server.claim())
	if pg.State(err) == notInCharge {
		return ErrSuperseded
	}
	return err
}

// watchPause is between two checks of Watch, and thus how long a superseded agent may continue to listen. It writes nothing in
// that time.
const watchPause = time.Second

// Watch returns ErrSuperseded once another agent has taken over, and nil when ctx ends. It survives a restart of PostgreSQL. It
// calls looked after each check, with why the charge could not be confirmed, or nil.
func (l *Leader) Watch(ctx context.Context, looked func(error)) error {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.look(ctx)
		if errors.Is(err, ErrSuperseded) {
			return err
		}
		if ctx.Err() == nil {
			looked(err)
		}
	}
}

// look does one check, on a new connection if the old one is gone. It ignores that PostgreSQL is down.
func (l *Leader) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if l.conn != nil {
		err := l.check(ctx)
		if err == nil || errors.Is(err, ErrSuperseded) {
			return err
		}
		l.Release()
	}
	if err := l.connect(ctx); err != nil {
		return err
	}
	return l.lock(ctx)
}

// Release gives up charge of the server.
func (l *Leader) Release() {
	if l.conn != nil {
		_ = l.conn.Close() // the server ends the lock with the session
		l.conn = nil
	}
}

// number runs a query for one number on a bare connection.
func number(ctx context.Context, conn driver.Conn, query string) (n int64, err error) {
	value, err := first(ctx, conn, query)
	n, _ = value.(int64)
	return n, err
}

// first runs a query for one value on a bare connection; nil where there is no row.
func first(ctx context.Context, conn driver.Conn, query string) (driver.Value, error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, errors.New("the driver has no bare queries")
	}
	rows, err := queryer.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, rows.Close())
	}
	return values[0], rows.Close()
}

// nameInstallation gives the maintenance database a name of its own, once.
const nameInstallation = "INSERT INTO ledger.installation DEFAULT VALUES ON CONFLICT DO NOTHING"

// installationTime bounds one statement.
const installationTime = 5 * time.Second

// Installation tells this server from every other one, by whichever address it is reached; empty until an agent has
// been in charge of it.
func (l *Ledger) Installation(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, installationTime)
	defer cancel()
	name, err := pg.One[string](ctx, l.db, "SELECT id::text FROM ledger.installation")
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}
