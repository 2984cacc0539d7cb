package settings_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// A round is one session that is ended for new settings while its client has one short transaction after the other.
const (
	raceClients  = 30
	sampleRounds = 30
	changePause  = 450 * time.Millisecond // PgBouncer ends sessions every third of a second
)

// races counts what becomes of sessions that are ended.
type races struct {
	entry, server string        // where the clients and the superuser connect
	pause         time.Duration // of a client between two transactions

	ended       atomic.Int64 // sessions, by what their next transaction finds
	interrupted atomic.Int64 // transactions that had begun
	untold      atomic.Int64 // transactions in one message that were done, and ended in an error
	refused     atomic.Int64 // log-ins
	last        atomic.Int64
}

// rounds is how many sessions are to be ended: make interruptions asks for 10,000.
func rounds(t testing.TB) int64 {
	t.Helper()
	if n := os.Getenv("PGHERD_ROUNDS"); n != "" {
		return int64(check.Must(strconv.Atoi(n))(t))
	}
	return sampleRounds
}

// Ending a session that is in no transaction races with one that begins. PgBouncer, which ends it, knows: whoever comes too late
// finds the session gone before anything was done, and no transaction that had begun is interrupted.
func TestEndedSessionsInterruptNoTransaction(t *testing.T) {
	r := race(t, "", time.Millisecond, func(generation int64) command.Configure {
		timeouts := *agenttest.Standard
		timeouts.StatementMs += generation
		return command.Configure{Timeouts: &timeouts}
	})
	if r.interrupted.Load()+r.untold.Load() > 0 {
		t.Error("transactions were interrupted")
	}
}

// Clients of the second entry stay, or are ended where PgBouncer remembers for them what has changed: when they have been quiet.
func TestRenewedClientsInterruptNoTransaction(t *testing.T) {
	if s := agenttest.Shared(t); !poolerRemembers(t, s) {
		return // nobody is ended; see TestReadOnlyByDefault
	}
	r := race(t, ".transaction", 4*time.Second, func(generation int64) command.Configure {
		return command.Configure{ReadOnly: generation%2 == 1}
	})
	if r.interrupted.Load()+r.untold.Load() > 0 {
		t.Error("transactions were interrupted")
	}
}

// race has clients run short transactions at an entry, with pauses of about some time, while settings change.
func race(t *testing.T, entry string, pause time.Duration, settings func(generation int64) command.Configure) *races {
	t.Helper()
	s := agenttest.Shared(t)
	w := agenttest.Want(database.SingleLogin)
	w.Cap = 40
	s.Done(t, w.Create())
	check.Must(s.Owner(t, w).Exec("CREATE TABLE done (id bigint PRIMARY KEY)"))(t)
	r := races{entry: s.PooledURL(w.Name+entry, w.Name, w.Passwords[database.OwnerLogin]), server: s.PG.URL(w.Name), pause: pause}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range raceClients {
		clients.Go(func() { r.client(ctx, t) })
	}
	for generation := int64(1); r.ended.Load() < rounds(t) && !t.Failed(); generation++ {
		s.Done(t, w.Configure(generation, settings(generation)))
		time.Sleep(changePause)
	}
	stop()
	clients.Wait()
	t.Logf("%d sessions ended: %d transactions interrupted, %d done and not told, %d log-ins refused", r.ended.Load(),
		r.interrupted.Load(), r.untold.Load(), r.refused.Load())
	return &r
}

// client runs transactions, and begins anew where its session has ended.
func (r *races) client(ctx context.Context, t testing.TB) {
	for ctx.Err() == nil {
		db := check.Must(sql.Open("postgres", r.entry))(t)
		conn, err := db.Conn(context.Background())
		for err == nil && ctx.Err() == nil {
			if rand.IntN(2) == 0 {
				err = r.transaction(conn)
			} else {
				err = r.statement(t, conn)
			}
			time.Sleep(rand.N(2 * r.pause))
		}
		switch {
		case conn == nil:
			r.refused.Add(1)
		case err != nil:
			r.ended.Add(1)
		}
		_ = db.Close()
	}
}

func (r *races) transaction(conn *sql.Conn) error {
	run := func(statement string) error {
		_, err := conn.ExecContext(context.Background(), statement)
		return err
	}
	if err := run("BEGIN READ WRITE"); err != nil {
		return err
	}
	for _, statement := range []string{"SELECT 1", fmt.Sprintf("INSERT INTO done VALUES (%d)", r.last.Add(1)), "COMMIT"} {
		if err := run(statement); err != nil {
			r.interrupted.Add(1)
			return err
		}
	}
	return nil
}

// statement is a transaction in one message. One that fails must not have been done.
func (r *races) statement(t testing.TB, conn *sql.Conn) error {
	id := r.last.Add(1)
	one := fmt.Sprintf("BEGIN READ WRITE; INSERT INTO done VALUES (%d); COMMIT", id)
	_, err := conn.ExecContext(context.Background(), one)
	if err == nil {
		return nil
	}
	var found bool
	super := check.Must(sql.Open("postgres", r.server))(t)
	defer super.Close()
	check.NoError(t, super.QueryRow("SELECT EXISTS (SELECT FROM done WHERE id = $1)", id).Scan(&found))
	if found {
		r.untold.Add(1)
	}
	return err
}
