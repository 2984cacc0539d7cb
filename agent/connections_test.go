package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// holders keep the rows of roles, by functions that the roles have made in another database. Who is ended comes again at once.
type holders struct {
	s      *stack
	in     wanted
	ctx    context.Context
	all    sync.WaitGroup
	cancel context.CancelFunc
}

func (s *stack) holders(t testing.TB) *holders {
	t.Helper()
	h := &holders{s: s, in: want(database.Managed)}
	h.in.cap = 50
	s.done(t, h.in.create())
	h.ctx, h.cancel = context.WithCancel(t.Context())
	t.Cleanup(h.stop)
	return h
}

func (h *holders) stop() { h.cancel(); h.all.Wait() }

// hold has two sessions of another login keep the role of a login.
func (h *holders) hold(t testing.TB, l loginOf) {
	t.Helper()
	owner := h.s.owner(t, h.in)
	check.Must(owner.Exec(fmt.Sprintf(`CREATE SCHEMA %[1]q; GRANT USAGE, CREATE ON SCHEMA %[1]q TO %[1]q;
		GRANT CONNECT ON DATABASE %[2]q TO %[1]q`, l.username, h.in.name)))(t)
	theirs := h.s.direct(t, h.in.name, l.username, l.password)
	check.Must(theirs.Exec(fmt.Sprintf(`CREATE FUNCTION %q.hold() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
		AS 'BEGIN ALTER ROLE CURRENT_USER PASSWORD NULL; END'`, l.username)))(t)
	_ = theirs.Close()
	begun := make(chan struct{})
	var once sync.Once
	for range 2 {
		db := h.s.owner(t, h.in)
		h.all.Go(func() {
			for h.ctx.Err() == nil {
				holdOnce(h.ctx, db, l.username, func() { once.Do(func() { close(begun) }) })
			}
		})
	}
	<-begun
}

func holdOnce(ctx context.Context, db *sql.DB, role string, begun func()) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "SELECT "+quoted(role)+".hold()"); err != nil {
		return
	}
	begun()
	_, _ = tx.ExecContext(ctx, "SELECT pg_sleep(600)")
}

// ended runs something that must end within a time.
func ended(t testing.TB, what string, bound time.Duration, do func()) {
	t.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	t.Logf("%s: %s", what, took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("%s took %s, more than %s", what, took, bound)
	}
}

// singleConnection is a stack whose agent has one connection for its commands.
func singleConnection(t *testing.T) *stack {
	t.Helper()
	s := crashStack(t)
	s.config.Connections = 1
	return s
}

// No command waits for a second connection while it holds one, whoever is in its way.
func TestEveryCommandIsDoneOverOneConnection(t *testing.T) {
	t.Parallel()
	s := singleConnection(t)
	half := want(database.Managed)
	first := s.child(t, crash.CreateRenamed)
	_, _, _ = s.send(half.create()) // gets no answer
	first.died(t)
	s.child(t, "")
	h := s.holders(t)
	w, stranger := s.made(t, database.Managed), s.made(t, database.SingleLogin)
	holding := func(t testing.TB, ordinal int) loginOf {
		l := s.opened(t, w.additional(ordinal, role.Custom))
		h.hold(t, l)
		return l
	}
	granting := func(t testing.TB) *sql.Tx { // an open grant of the owner's on the database
		tx := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("GRANT TEMPORARY ON DATABASE %q TO %s", w.name, w.names().Runtime)))(t)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	// beside is a command while another is kept from being done.
	beside := func(t *testing.T, ordinal int, command func()) func() {
		l := holding(t, ordinal)
		changed := make(chan error, 1)
		go func() {
			_, _, err := s.send(l.shut(role.Expiry, 2))
			changed <- err
		}()
		time.Sleep(100 * time.Millisecond)
		return func() { command(); check.NoError(t, <-changed) }
	}
	const soon, pushed, insisted = 10 * time.Second, 20 * time.Second, 20 * time.Second
	for _, c := range []struct {
		name  string
		bound time.Duration
		run   func(t *testing.T) (command func())
	}{
		{"create", soon, func(t *testing.T) func() {
			return func() { s.done(t, want(database.Managed).create()) }
		}},
		{"allowlist", soon, func(t *testing.T) func() {
			return func() { s.done(t, w.allowlist(2, "127.0.0.0/8")) }
		}},
		{"prepare", insisted, func(t *testing.T) func() {
			l, tx := w.additional(11, role.ReadOnly), granting(t)
			return func() {
				s.refusedFor(t, command.ReasonUnavailable, l.prepare(1))
				check.NoError(t, tx.Rollback())
				s.done(t, l.prepare(1))
			}
		}},
		{"open", soon, func(t *testing.T) func() {
			l := w.additional(12, role.ReadOnly)
			s.done(t, l.prepare(1))
			s.openGrant(t, stranger, l.username)
			return func() { s.done(t, l.open(1)) }
		}},
		{"rotate", pushed, func(t *testing.T) func() {
			l := holding(t, 13)
			return func() { s.done(t, l.rotate(2, l.renewed())) }
		}},
		{"revoke", pushed, func(t *testing.T) func() {
			l := holding(t, 14)
			return func() { s.done(t, l.shut(role.Revocation, 2)) }
		}},
		{"expire", pushed, func(t *testing.T) func() {
			l := holding(t, 15)
			return func() { s.done(t, l.shut(role.Expiry, 2)) }
		}},
		{"remove", pushed + insisted, func(t *testing.T) func() {
			l := holding(t, 16)
			s.openGrant(t, stranger, l.username)
			return func() { s.removed(t, l.remove(2)) }
		}},
		{"backup", soon, func(t *testing.T) func() {
			tx := granting(t)
			b := w.backup(newUUID(), backupName, true)
			return func() {
				if got := as[command.BackupReport](t, s.done(t, b)); got.State != command.BackupRunning {
					t.Errorf("%+v", got)
				}
				check.NoError(t, tx.Rollback())
				s.wantBackup(t, b, command.BackupDone, "")
			}
		}},
		{"close a create", soon, func(t *testing.T) func() {
			s.openGrant(t, stranger, half.name)
			return func() { s.done(t, closing(half.operation)) }
		}},
		{"close a backup", soon, func(t *testing.T) func() {
			granting(t)
			b := w.backup(newUUID(), "20260301_120001.sql.gz", true)
			s.done(t, b)
			return func() { s.done(t, closing(b.OperationID)) }
		}},
		{"inspect", soon, func(t *testing.T) func() {
			l := w.present(database.RuntimeLogin)
			h.hold(t, l)
			return beside(t, 18, func() { s.wantCondition(t, l, command.LoginInForce) })
		}},
		{"stop and start", 2 * pushed, func(t *testing.T) func() {
			holding(t, 17)
			return func() {
				s.done(t, w.access(2, false, true))
				s.done(t, w.access(3, true, false))
			}
		}},
		{"size", soon, func(t *testing.T) func() {
			return beside(t, 19, func() { s.answered(t, "/v1/databases/"+w.id+"/size") })
		}},
		{"health", soon, func(t *testing.T) func() { return beside(t, 20, func() { s.answered(t, "/health") }) }},
	} {
		t.Run(c.name, func(t *testing.T) { ended(t, c.name, c.bound, c.run(t)) })
	}
}

// answered demands an answer that is none of an error.
func (s *stack) answered(t testing.TB, path string) {
	t.Helper()
	if status, text, err := s.request(http.MethodGet, path, nil); err != nil || status != http.StatusOK {
		t.Errorf("%s: status %d, %s, %v", path, status, text, err)
	}
}

// A customer keeps changes of many roles from being done for as long as they like. The commands of others are done meanwhile.
func TestBlockedChangesOfOneCustomerHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	h, bystander := s.holders(t), s.made(t, database.Managed)
	mine := s.opened(t, bystander.additional(1, role.ReadOnly))
	const blocked = 6
	var theirs []loginOf
	for range blocked {
		l := s.opened(t, s.made(t, database.Managed).additional(1, role.Custom))
		h.hold(t, l)
		theirs = append(theirs, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	for _, l := range theirs {
		sending.Go(func() {
			for generation := int64(2); ctx.Err() == nil; generation++ {
				next := l.renewed()
				if _, reason, err := s.send(l.rotate(generation, next)); err != nil {
					t.Errorf("%s %v", reason, err)
				}
				l = next
			}
		})
	}
	defer sending.Wait()
	defer cancel()
	time.Sleep(3 * time.Second) // all of them have come as far as they get
	const few = 10 * time.Second
	for i := range 3 {
		next := mine.renewed()
		ended(t, "a rotation", few, func() { s.done(t, mine.rotate(int64(i+2), next)) })
		mine = next
		ended(t, "a create", few, func() { s.done(t, want(database.Managed).create()) })
	}
}
