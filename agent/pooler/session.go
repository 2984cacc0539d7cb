package pooler

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/lib/pq"
)

// session is one connection through PgBouncer's unix socket. It uses the driver directly, because the admin console supports
// only simple queries, and because every wait must end with its context: a stopped PgBouncer does not answer at all, and the
// driver's own cancellation waits for an answer.
type session struct {
	wire   *timedWire
	conn   driver.Conn
	reused bool
}

// dial logs in at an entry through the unix socket. Its error wraps errAccepted if the password was accepted nevertheless.
func dial(ctx context.Context, s Settings, entry, login, password string) (*session, error) {
	return connect(ctx, pq.Config{
		Host: s.SocketDir, Port: uint16(s.ListenPort), Database: entry, User: login, Password: password,
	}, &timedWire{login: ctx})
}

// connect logs in over a wire.
func connect(ctx context.Context, to pq.Config, wire *timedWire) (*session, error) {
	to.SSLMode, to.ApplicationName, to.ClientEncoding, to.Datestyle = pq.SSLModeDisable, "pgherd-agent", "UTF8", "ISO, MDY"
	connector, err := pq.NewConnectorConfig(to)
	if err != nil {
		return nil, err
	}
	connector.Dialer(wire)
	conn, err := connector.Connect(ctx)
	wire.unhook()
	if err != nil {
		wire.close()
		if wire.heard.acceptance() {
			err = fmt.Errorf("%w: %w", errAccepted, err)
		}
		return nil, ended(ctx, err)
	}
	wire.heard.forget()
	return &session{wire: wire, conn: conn}, nil
}

// crowdTime is how long the agent's own log-ins wait for room; crowdPause is between two attempts.
const (
	crowdTime  = 10 * time.Second
	crowdPause = 100 * time.Millisecond
)

// dialInTurn is dial, but waits while PgBouncer has as many clients as it admits, which it checks before all else: the agent ends
// some of a crowd within seconds.
func dialInTurn(ctx context.Context, s Settings, entry, login, password string) (*session, error) {
	for began := time.Now(); ; {
		in, err := dial(ctx, s, entry, login, password)
		var answer *pq.Error
		if !errors.As(err, &answer) || !strings.Contains(answer.Message, "no more connections allowed") ||
			time.Since(began) > crowdTime {
			return in, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(crowdPause):
		}
	}
}

// each runs one simple query and hands every row to fn.
func (s *session) each(ctx context.Context, query string, fn func(row) error) error {
	s.wire.obey(ctx)
	defer s.wire.unhook()
	queryer, ok := s.conn.(driver.QueryerContext)
	if !ok {
		return errors.New("pooler: the driver has no simple queries")
	}
	rows, err := queryer.QueryContext(context.WithoutCancel(ctx), query, nil)
	if err != nil {
		return ended(ctx, err)
	}
	err = readRows(rows, fn)
	return ended(ctx, errors.Join(err, rows.Close()))
}

func readRows(rows driver.Rows, fn func(row) error) error {
	columns := make(map[string]int)
	for i, name := range rows.Columns() {
		columns[name] = i
	}
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := fn(row{columns, values}); err != nil {
			return err
		}
	}
}

func (s *session) close() {
	_ = s.wire.conn.SetDeadline(time.Now().Add(time.Second)) // saying goodbye must not hang either
	_ = s.conn.Close()
	s.wire.close()
}

// ended adds the end of the context to an error that it caused.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// row is one row of an answer; a column that this version of PgBouncer lacks reads as empty.
type row struct {
	columns map[string]int
	values  []driver.Value
}

func (r row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		return ""
	}
	switch v := r.values[i].(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (r row) number(column string) int64 {
	if i, ok := r.columns[column]; ok {
		if n, ok := r.values[i].(int64); ok {
			return n
		}
	}
	var n int64
	_, _ = fmt.Sscan(r.text(column), &n) // no number reads as 0
	return n
}

// timedWire is a session's network connection, on which the end of a context can interrupt every wait.
type timedWire struct {
	login context.Context // of the log-in, which begins inside the driver's call of DialContext
	conn  net.Conn
	heard *overheard
	stop  func() bool
	// secure begins TLS on a new connection; nil: none.
	secure func(context.Context, net.Conn) (net.Conn, error)
}

func (w *timedWire) Dial(network, address string) (net.Conn, error) {
	return w.DialContext(w.login, network, address)
}

func (w *timedWire) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(w.login, timeout)
	defer cancel()
	return w.DialContext(ctx, network, address)
}

func (w *timedWire) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.conn = conn
	w.obey(w.login)
	if w.secure != nil {
		if conn, err = w.secure(ctx, conn); err != nil {
			return nil, err
		}
	}
	w.heard = &overheard{Conn: conn, listening: true}
	return w.heard, nil
}

// obey makes reads and writes end when ctx does, until unhook.
func (w *timedWire) obey(ctx context.Context) {
	conn := w.conn
	_ = conn.SetDeadline(time.Time{})
	w.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

func (w *timedWire) unhook() {
	if w.stop != nil {
		w.stop()
	}
}

func (w *timedWire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
}
