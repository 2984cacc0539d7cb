package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// holders keep the rows of roles, by functions that the roles have made in another database. Who is ended comes again at once.
type holders struct {
	s      *agenttest.Stack
	in     agenttest.Wanted
	ctx    context.Context
	all    sync.WaitGroup
	cancel context.CancelFunc
}

func newHolders(t testing.TB, s *agenttest.Stack) *holders {
	t.Helper()
	h := &holders{s: s, in: agenttest.Want(database.Managed)}
	h.in.Cap = 50
	s.Done(t, h.in.Create())
	h.ctx, h.cancel = context.WithCancel(t.Context())
	t.Cleanup(h.stop)
	return h
}

func (h *holders) stop() { h.cancel(); h.all.Wait() }

// hold has two sessions of another login keep the role of a login.
func (h *holders) hold(t testing.TB, l agenttest.LoginOf) {
	t.Helper()
	owner := h.s.Owner(t, h.in)
	check.Must(owner.Exec(fmt.Sprintf(`CREATE SCHEMA %[1]q; GRANT USAGE, CREATE ON SCHEMA %[1]q TO %[1]q;
		GRANT CONNECT ON DATABASE %[2]q TO %[1]q`, l.Username, h.in.Name)))(t)
	theirs := h.s.Direct(t, h.in.Name, l.Username, l.Password)
	check.Must(theirs.Exec(fmt.Sprintf(`CREATE FUNCTION %q.hold() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
		AS 'BEGIN ALTER ROLE CURRENT_USER PASSWORD NULL; END'`, l.Username)))(t)
	_ = theirs.Close()
	begun := make(chan struct{})
	var once sync.Once
	for range 2 {
		db := h.s.Owner(t, h.in)
		h.all.Go(func() {
			for h.ctx.Err() == nil {
				holdOnce(h.ctx, db, l.Username, func() { once.Do(func() { close(begun) }) })
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
	if _, err := tx.ExecContext(ctx, "SELECT "+agenttest.Quoted(role)+".hold()"); err != nil {
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
func singleConnection(t *testing.T) *agenttest.Stack {
	t.Helper()
	s := agenttest.CrashStack(t)
	s.Config.Connections = 1
	return s
}

// No command waits for a second connection while it holds one, whoever is in its way.
func TestEveryCommandIsDoneOverOneConnection(t *testing.T) {
	t.Parallel()
	s := singleConnection(t)
	half := agenttest.Want(database.Managed)
	first := s.Child(t, crash.CreateRenamed)
	_, _, _ = s.Send(half.Create()) // gets no answer
	first.Died(t)
	s.Child(t, "")
	h := newHolders(t, s)
	w, stranger := s.Made(t, database.Managed), s.Made(t, database.SingleLogin)
	holding := func(t testing.TB, ordinal int) agenttest.LoginOf {
		l := s.Opened(t, w.Additional(ordinal, role.Custom))
		h.hold(t, l)
		return l
	}
	granting := func(t testing.TB) *sql.Tx { // an open grant of the owner's on the database
		tx := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(fmt.Sprintf("GRANT TEMPORARY ON DATABASE %q TO %s", w.Name, w.Names().Runtime)))(t)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	// beside is a command while another is kept from being done.
	beside := func(t *testing.T, ordinal int, command func()) func() {
		l := holding(t, ordinal)
		changed := make(chan error, 1)
		go func() {
			_, _, err := s.Send(l.Shut(role.Expiry, 2))
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
			return func() { s.Done(t, agenttest.Want(database.Managed).Create()) }
		}},
		{"allowlist", soon, func(t *testing.T) func() {
			return func() { s.Done(t, w.Allowlist(2, "127.0.0.0/8")) }
		}},
		{"prepare", insisted, func(t *testing.T) func() {
			l, tx := w.Additional(11, role.ReadOnly), granting(t)
			return func() {
				s.RefusedFor(t, command.ReasonUnavailable, l.Prepare(1))
				check.NoError(t, tx.Rollback())
				s.Done(t, l.Prepare(1))
			}
		}},
		{"open", soon, func(t *testing.T) func() {
			l := w.Additional(12, role.ReadOnly)
			s.Done(t, l.Prepare(1))
			s.OpenGrant(t, stranger, l.Username)
			return func() { s.Done(t, l.Open(1)) }
		}},
		{"rotate", pushed, func(t *testing.T) func() {
			l := holding(t, 13)
			return func() { s.Done(t, l.Rotate(2, l.Renewed())) }
		}},
		{"revoke", pushed, func(t *testing.T) func() {
			l := holding(t, 14)
			return func() { s.Done(t, l.Shut(role.Revocation, 2)) }
		}},
		{"expire", pushed, func(t *testing.T) func() {
			l := holding(t, 15)
			return func() { s.Done(t, l.Shut(role.Expiry, 2)) }
		}},
		{"remove", pushed + insisted, func(t *testing.T) func() {
			l := holding(t, 16)
			s.OpenGrant(t, stranger, l.Username)
			return func() { s.Removed(t, l.Remove(2)) }
		}},
		{"backup", insisted, func(t *testing.T) func() {
			tx := granting(t)
			b := w.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
			return func() {
				if got := agenttest.As[command.BackupReport](t, s.Done(t, b)); got.State != command.BackupRunning {
					t.Errorf("%+v", got)
				}
				check.NoError(t, tx.Rollback())
				s.WantBackup(t, b, command.BackupDone, "")
			}
		}},
		{"close a create", soon, func(t *testing.T) func() {
			s.OpenGrant(t, stranger, half.Name)
			return func() { s.Done(t, agenttest.Closing(half.Operation)) }
		}},
		{"close a backup", soon, func(t *testing.T) func() {
			granting(t)
			b := w.Backup(agenttest.NewUUID(), "20260301_120001.sql.gz", true)
			s.Done(t, b)
			return func() { s.Done(t, agenttest.Closing(b.OperationID)) }
		}},
		{"inspect", soon, func(t *testing.T) func() {
			l := w.Present(database.RuntimeLogin)
			h.hold(t, l)
			return beside(t, 18, func() { s.WantCondition(t, l, command.LoginInForce) })
		}},
		{"stop and start", 2 * pushed, func(t *testing.T) func() {
			holding(t, 17)
			return func() {
				s.Done(t, w.Access(2, false, true))
				s.Done(t, w.Access(3, true, false))
			}
		}},
		{"size", soon, func(t *testing.T) func() {
			return beside(t, 19, func() { answered(t, s, "/v1/databases/"+w.ID+"/size") })
		}},
		{"health", soon, func(t *testing.T) func() { return beside(t, 20, func() { answered(t, s, "/health") }) }},
	} {
		t.Run(c.name, func(t *testing.T) { ended(t, c.name, c.bound, c.run(t)) })
	}
}

// answered demands an answer that is none of an error.
func answered(t testing.TB, s *agenttest.Stack, path string) {
	t.Helper()
	if status, text, err := s.Request(http.MethodGet, path, nil); err != nil || status != http.StatusOK {
		t.Errorf("%s: status %d, %s, %v", path, status, text, err)
	}
}

// A customer keeps changes of many roles from being done for as long as they like. The commands of others are done meanwhile.
func TestBlockedChangesOfOneCustomerHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	s.Child(t, "")
	h, bystander := newHolders(t, s), s.Made(t, database.Managed)
	mine := s.Opened(t, bystander.Additional(1, role.ReadOnly))
	const blocked = 6
	var theirs []agenttest.LoginOf
	for range blocked {
		l := s.Opened(t, s.Made(t, database.Managed).Additional(1, role.Custom))
		h.hold(t, l)
		theirs = append(theirs, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	for _, l := range theirs {
		sending.Go(func() {
			for generation := int64(2); ctx.Err() == nil; generation++ {
				next := l.Renewed()
				if _, reason, err := s.Send(l.Rotate(generation, next)); err != nil {
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
		next := mine.Renewed()
		ended(t, "a rotation", few, func() { s.Done(t, mine.Rotate(int64(i+2), next)) })
		mine = next
		ended(t, "a create", few, func() { s.Done(t, agenttest.Want(database.Managed).Create()) })
	}
}
