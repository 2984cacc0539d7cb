package agenttest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// ConnectedAs opens one connection of a login in every way, and keeps it.
func (s *Stack) ConnectedAs(t testing.TB, l LoginOf) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for way, db := range s.WaysOf(t, l) {
		conns[way] = check.Must(db.Conn(t.Context()))(t)
		check.Must(conns[way].ExecContext(t.Context(), "SELECT 1"))(t)
	}
	return conns
}

// Dead demands that each of the connections has been ended: one that merely gets no answer may be waiting in the pooler.
func Dead(t testing.TB, what string, conns map[string]*sql.Conn) {
	t.Helper()
	for way, conn := range conns {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := conn.ExecContext(ctx, "SELECT 1"); !isEnded(err) || ctx.Err() != nil {
			t.Errorf("%s: the %s connection is not ended: %v", what, way, err)
		}
		cancel()
	}
}

// isEnded reports whether an error says that the other side has ended the connection: by PostgreSQL or the pooler in words, or
// without.
func isEnded(err error) bool {
	for _, end := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	state := SQLState(err)
	return state == "57P01" || state == "08P01"
}

// WantCondition asks how a login stands, by its present password.
func (s *Stack) WantCondition(t testing.TB, l LoginOf, want command.LoginCondition) {
	t.Helper()
	if got := s.condition(t, l); got != want {
		t.Errorf("%s is %s, want %s", l.Username, got, want)
	}
}

// OpenedBy is Stack.Opened, for a chain.
func (l LoginOf) OpenedBy(t testing.TB, s *Stack) LoginOf { t.Helper(); return s.Opened(t, l) }

// NextGeneration only grows.
func (s *Stack) NextGeneration() int64 { return time.Now().UnixNano() }

// Remembered is for how long PgBouncer does not try again to get into PostgreSQL that was down: its server_login_retry, and some
// time to act.
const Remembered = 1100 * time.Millisecond
