package abuse_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// waitForAll is a drop of a database that waits for every session of the server. Whoever drops one does for a moment.
var waitForAll = counted("sessions that wait for all", 1,
	"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ProcSignalBarrier'")

// standStill has clients stand still in the middle of a statement: half of them do not read the result, and the others do not go
// on with a COPY. Whoever is ended comes back.
func standStill(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "stalls", "CREATE TABLE stands (text text)")
	standing := new(atomic.Int64)
	for n := range 6 {
		again(t, func(ctx context.Context) {
			conn, err := pgconn.Connect(ctx, m.PoolerURL(d.Name, d.Username, d.Password))
			if err != nil {
				return
			}
			defer conn.Close(ctx)
			standing.Add(1)
			defer standing.Add(-1)
			if n%2 == 0 {
				_, _ = conn.CopyFrom(ctx, silent{ctx}, "COPY stands FROM STDIN")
				return
			}
			conn.Exec(ctx, "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)").NextResult()
			wait(ctx, lasts/2) // and comes back, whether it was ended or not
		})
	}
	for ctx := soon(t); standing.Load() < 6 && ctx.Err() == nil; {
		wait(ctx, 10*time.Millisecond)
	}
	return func(t *testing.T) {
		if standing.Load() == 0 {
			t.Error("nobody stands still")
		}
	}
}

// silent sends nothing, until the connection ends.
type silent struct{ context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.Done()
	return 0, errors.New("nothing was sent")
}
