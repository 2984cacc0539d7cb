package agent_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// connectedAs opens one connection of a login in every way, and keeps it.
func (s *stack) connectedAs(t testing.TB, l loginOf) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for way, db := range s.waysOf(t, l) {
		conns[way] = check.Must(db.Conn(t.Context()))(t)
		check.Must(conns[way].ExecContext(t.Context(), "SELECT 1"))(t)
	}
	return conns
}

// dead demands that each of the connections has been ended: one that merely gets no answer may be waiting in the pooler.
func dead(t testing.TB, what string, conns map[string]*sql.Conn) {
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
	state := sqlState(err)
	return state == "57P01" || state == "08P01"
}

// wantCondition asks how a login stands, by its present password.
func (s *stack) wantCondition(t testing.TB, l loginOf, want command.LoginCondition) {
	t.Helper()
	if got := s.condition(t, l); got != want {
		t.Errorf("%s is %s, want %s", l.username, got, want)
	}
}

// Every login of a database rotates: its connections end, nobody else's do, and only the new password works.
func TestRotationEndsEveryUseOfTheOldPassword(t *testing.T) {
	overModels(t, testRotationEndsEveryUseOfTheOldPassword)
}

func testRotationEndsEveryUseOfTheOldPassword(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	logins := []loginOf{
		s.opened(t, w.additional(1, role.ReadOnly)), s.opened(t, w.additional(2, role.Custom)),
	}
	for _, login := range m.Logins() {
		logins = append(logins, w.present(login))
	}
	bystander := s.connectedAs(t, w.additional(3, role.ReadWrite).openedBy(t, s))
	for _, l := range logins {
		conns := s.connectedAs(t, l)
		next := l.renewed()
		proof := as[role.Proof](t, s.done(t, l.rotate(2, next)))
		if want := (role.Proof{
			ClientsClosed: 2, SessionsEnded: 3, NoneLeft: true, OldRefused: true, NewAccepted: true,
		}); proof != want {
			t.Errorf("%s: %+v, want %+v", l.username, proof, want)
		}
		dead(t, l.username, conns)
		s.getsInNowhere(t, "the old password of "+l.username, l)
		s.getsIn(t, "the new password of "+l.username, next)
		s.wantCondition(t, next, command.LoginInForce)
		s.wantCondition(t, l, command.LoginDrifted)
	}
	for way, conn := range bystander {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("another role's %s connection: %v", way, err)
		}
	}
}

// openedBy is stack.opened, for a chain.
func (l loginOf) openedBy(t testing.TB, s *stack) loginOf { t.Helper(); return s.opened(t, l) }

func (s *stack) getsInNowhereDirectly(t testing.TB, l loginOf) {
	t.Helper()
	refused(t, "without CONNECT", s.direct(t, l.name, l.username, l.password), "SELECT 1")
}

// nextGeneration only grows.
func (s *stack) nextGeneration() int64 { return time.Now().UnixNano() }

func TestTheAgentAndTheHolderAreNoLogins(t *testing.T) {
	s, w := databaseStack(t)
	for _, username := range []string{"pgherd_agent", w.names().Holder} {
		l := w.additional(1, role.ReadOnly)
		l.username = username
		s.refusedFor(t, command.ReasonNotFound, l.rotate(2, l.renewed()))
	}
}

// A role that an administrator has dropped and made again is none of ours: it is not taken over, and no gate lets it in.
func TestStrangerUnderALoginsNameIsKeptOut(t *testing.T) {
	s, w, l := roleStack(t, role.Custom)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s", w.name, l.username)))(t)
	check.Must(s.super.Exec(fmt.Sprintf("DROP ROLE %s; CREATE ROLE %[1]s LOGIN PASSWORD '%s'; GRANT CONNECT ON DATABASE %q TO %[1]s",
		l.username, l.verifier, w.name)))(t)
	s.wantCondition(t, l, command.LoginAbsent)
	s.refusedFor(t, command.ReasonNotFound, l.rotate(2, l.renewed()))
	s.refusedFor(t, command.ReasonNameTaken, w.additional(1, role.Custom).prepare(3))
	if found := as[role.Dependencies](t, s.done(t, l.remove(4))); len(found.List) > 0 {
		t.Errorf("%+v", found)
	}
	refused(t, "a stranger", s.pooled(t, w.name, l.username, l.password), "SELECT 1")
	works(t, "the stranger itself", s.direct(t, w.name, l.username, l.password))
	check.Must(s.super.Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s; DROP ROLE %[2]s", w.name, l.username)))(t)
}
