package guard_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// standStill has three clients of a database stand still: one does not read its result, one does not go on with its COPY, and one
// does not read its notifications. It returns what counts their sessions.
func standStill(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) (standing func() string) {
	t.Helper()
	owner := s.Owner(t, w)
	check.Must(owner.Exec("CREATE TABLE t (text text)"))(t)
	connect := func() *pgconn.PgConn {
		c := check.Must(pgconn.Connect(t.Context(), s.PG.URLFor(w.Name, w.Passwords[database.OwnerLogin], w.Name)))(t)
		t.Cleanup(func() { _ = c.Conn().Close() }) // it was ended
		return c
	}
	reads, sends, listens := connect(), connect(), connect()
	reads.Exec(t.Context(), "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)").NextResult()
	go sends.CopyFrom(t.Context(), silent{t.Context()}, "COPY t FROM STDIN") // until it is ended
	check.Must(listens.Exec(t.Context(), "LISTEN x").ReadAll())(t)
	check.Must(owner.Exec("SELECT pg_notify('x', n || repeat('y', 7000)) FROM generate_series(1, 3000) n"))(t)
	standing = func() string {
		return s.One(t, fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity WHERE pid IN (%d, %d, %d)
			AND (wait_event = 'ClientWrite' OR state = 'active' AND wait_event = 'ClientRead')`,
			reads.PID(), sends.PID(), listens.PID()))
	}
	check.Eventually(t, "they do not stand still", func() bool { return standing() == "3" })
	return standing
}

// silent sends nothing until it ends.
type silent struct{ context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.Done()
	return 0, s.Err()
}

// DROP DATABASE waits for every session of the server. A backup does not wait for a client of another account that stands still,
// and neither does the drop of its copy for long.
func TestAClientThatStandsStill(t *testing.T) {
	s := agenttest.Shared(t)
	mallory, w := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	standing := standStill(t, s, mallory)
	began := time.Now()
	s.WantBackup(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true), command.BackupDone, "")
	t.Logf("the backup took %s", time.Since(began))
	check.Eventually(t, "its copy is left", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_database WHERE datname LIKE 'verify%'") == "0"
	})
	if n := standing(); n != "0" {
		t.Errorf("%s clients stand still", n)
	}
	t.Logf("its copy was dropped after %s", time.Since(began))
}
