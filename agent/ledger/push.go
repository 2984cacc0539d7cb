package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
)

// blockers are the customers' sessions that a session of the agent, whose process is $1, waits for. Its statements are about
// roles: any login may be in the way, by a function that changes the role which made it.
const blockers = ` FROM unnest(pg_blocking_pids($1::int)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid
	LEFT JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.backend_type = 'client backend' AND (` + AgentsOwn + `) IS NOT TRUE
	  AND r.rolsuper IS DISTINCT FROM true`

// blockerPause is between two looks at who is in the way.
const blockerPause = 50 * time.Millisecond

// PushThrough runs statements in one transaction, again and again. Whoever is in the way is ended: those that endOwn ends, and
// those that PostgreSQL names.
func (l *Ledger) PushThrough(ctx context.Context, endOwn func() error, statements ...string) error {
	try, push := pg.Transaction(append([]string{Soon}, statements...)), pg.Transaction(append([]string{Firmly}, statements...))
	for n := 0; ; n++ {
		err := pg.Send(ctx, l.db, try)
		if !InTheWay(err) {
			return err
		}
		if err := endOwn(); err != nil {
			return err
		}
		if n == 0 {
			continue // mostly nobody else was in the way
		}
		err = l.Pushing.Run(ctx, func() error { return pg.Freshly(func() error { return l.EndingBlockers(ctx, push, nil) }) })
		if !InTheWay(err) {
			return err
		}
	}
}

// errTurnOver is InTheWay: who is there comes again and again.
var errTurnOver = errors.New("the turn is over")

// EndingBlockers sends one message over the connection for that and terminates the customers' sessions that it waits for, and
// those that another function ends. That takes another connection, out of the pool, where nobody waits for this one.
func (l *Ledger) EndingBlockers(whole context.Context, text string, end func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(whole, pushTime)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && whole.Err() == nil {
			err = fmt.Errorf("%w: %w", errTurnOver, err)
		}
	}()
	conn, err := l.urgent.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- conn.Raw(func(c any) error { return pg.SendOver(ctx, c, text) }) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(blockerPause):
		}
		_, err := l.db.ExecContext(ctx, "SELECT pg_terminate_backend(a.pid)"+blockers, pid)
		if err == nil && end != nil {
			err = end(ctx)
		}
		if err != nil {
			return errors.Join(err, <-done)
		}
	}
}

// InTheWay reports whether another transaction prevented the change of a role.
func InTheWay(err error) bool { return errors.Is(err, errTurnOver) || pg.InTheWay(err) }

const (
	// Insistence is how long a customer's transaction may be in the way before the command is left for later.
	Insistence = 5 * time.Second
	// InsistPause is between two tries.
	InsistPause = 100 * time.Millisecond
)

// Insist runs statements in one transaction, some more times where a customer's own transaction is in the way, which it leaves
// alone.
func (l *Ledger) Insist(ctx context.Context, statements ...string) error {
	statements = append([]string{Soon, FlushLater}, statements...)
	try := func() error { return pg.Atomically(ctx, l.db, statements...) }
	began, err := time.Now(), try()
	for InTheWay(err) && time.Since(began) < Insistence {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(InsistPause):
		}
		err = l.patience.Run(ctx, try)
	}
	if !InTheWay(err) {
		return err
	}
	return Unavailable("a customer's open transaction is in the way; send the command again", err)
}

// Soon runs statements in one transaction, in which a customer's transaction is waited for no longer than 100 ms.
func (l *Ledger) Soon(ctx context.Context, statements ...string) error {
	return pg.Atomically(ctx, l.db, append([]string{Soon}, statements...)...)
}
