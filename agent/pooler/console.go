package pooler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// answerTime bounds one command of the admin console, whatever the caller's context allows.
const answerTime = 10 * time.Second

// ErrUnreachable is wrapped by every error that says PgBouncer did not answer at all.
var ErrUnreachable = errors.New("pooler: PgBouncer does not answer")

// ErrLeaving is Watch's error for a PgBouncer that answers the agent and has shut the customers' port: it was told to end, and
// waits for its clients or servers (SIGTERM, SIGINT). It wraps ErrUnreachable, for customers cannot connect.
var ErrLeaving = fmt.Errorf("%w to customers: it has shut their port, as when it is told to end and waits for clients "+
	"(SIGTERM); SIGQUIT ends it at once", ErrUnreachable)

// Console is PgBouncer's admin console. It is safe for concurrent use. Broken connections, as after a restart of PgBouncer, are
// replaced transparently.
type Console struct {
	settings Settings
	idle     chan *session
	former   atomic.Int64
	// lettingGo: PgBouncer is to end, and waits for nobody else, so no connection is kept.
	lettingGo atomic.Bool
}

// NewConsole makes a console; it dials when it is first used.
func NewConsole(s Settings) *Console {
	return &Console{settings: s, idle: make(chan *session, 4)}
}

// Close ends the idle connections. The console stays usable.
func (c *Console) Close() {
	for {
		select {
		case s := <-c.idle:
			s.close()
		default:
			return
		}
	}
}

// Ping asks PgBouncer for an answer. The error wraps ErrUnreachable if there was none.
func (c *Console) Ping(ctx context.Context) error {
	_, err := c.Version(ctx)
	return err
}

// Version returns what PgBouncer says of its version, such as "PgBouncer 1.26.1". The error wraps ErrUnreachable if nothing
// answered.
func (c *Console) Version(ctx context.Context) (version string, err error) {
	err = c.each(ctx, "SHOW VERSION", func(r row) error { version = r.text("version"); return nil })
	return version, err
}

// reload makes PgBouncer read its files. Up to 1.24 it answers alike whatever it could read; later ones answer with an error,
// which wraps ErrNotTakenOver, where a file is wrong or the certificate cannot be used.
func (c *Console) reload(ctx context.Context) error {
	err := c.command(ctx, "RELOAD")
	if err != nil && !errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrNotTakenOver, err)
	}
	return err
}

// Show hands each row that answers a command to fn, as texts by column. A column that this version of PgBouncer lacks is empty.
func (c *Console) Show(ctx context.Context, command string, fn func(map[string]string)) error {
	return c.each(ctx, command, func(r row) error {
		texts := make(map[string]string, len(r.columns))
		for name := range r.columns {
			texts[name] = r.text(name)
		}
		fn(texts)
		return nil
	})
}

func (c *Console) command(ctx context.Context, command string) error {
	return c.each(ctx, command, func(row) error { return nil })
}

// each runs a command. As all commands may be repeated, it retries once on a new connection if the first turns out to be dead,
// unless fn has already seen a row.
func (c *Console) each(ctx context.Context, command string, fn func(row) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		s, err := c.take(ctx)
		if err != nil {
			return err
		}
		var seen bool
		var stopped error // fn's own error, which is no fault of PgBouncer's
		err = s.each(ctx, command, func(r row) error { seen, stopped = true, fn(r); return stopped })
		if err == nil || isAnswer(err) {
			c.give(s)
			return describe(command, err)
		}
		s.close()
		if stopped != nil {
			return stopped
		}
		if !s.reused || seen || ctx.Err() != nil {
			return fmt.Errorf("%w: %s: %w", ErrUnreachable, command, err)
		}
	}
}

func (c *Console) take(ctx context.Context) (*session, error) {
	select {
	case s := <-c.idle:
		s.reused = true
		return s, nil
	default:
	}
	s, err := dial(ctx, c.settings, "pgbouncer", c.settings.AdminUser, c.settings.AdminPassword)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return s, nil
}

func (c *Console) give(s *session) {
	select {
	case c.idle <- s:
	default:
		s.close()
	}
	if c.lettingGo.Load() {
		c.Close()
	}
}

// isAnswer reports whether PgBouncer itself refused the command, so that the connection is still usable. After a fatal error it
// is not.
func isAnswer(err error) bool {
	var refused *pq.Error
	return errors.As(err, &refused) && !refused.Fatal()
}

func describe(command string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pooler: %s: %w", command, err)
}
