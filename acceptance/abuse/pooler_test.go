package abuse_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"
)

// fillPooler keeps as many idle clients as it can: more than the pooler takes.
func fillPooler(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	all := m.databases(t, "idle", 2)
	const wanted = 450
	const pause = time.Second // before a client that was refused or ended tries again
	open := new(atomic.Int64)
	entering := make(chan struct{}, 8) // log-ins take time, and are another abuse
	for n := range wanted {
		d := all[n%len(all)]
		again(t, func(ctx context.Context) {
			db, err := sql.Open("postgres", m.PoolerURL(d.Name+".transaction", d.Username, d.Password))
			if err != nil {
				return
			}
			defer db.Close()
			entering <- struct{}{}
			conn, err := db.Conn(ctx)
			<-entering
			if err == nil {
				open.Add(1)
				for err == nil { // finds out within a few seconds that it was ended
					wait(ctx, 5*time.Second)
					_, err = conn.ExecContext(ctx, "SELECT 1")
				}
				open.Add(-1)
				_ = conn.Close()
			}
			wait(ctx, pause)
		})
	}
	for deadline := time.Now().Add(patience); open.Load() < wanted/2 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	// With less than half of all places the abuse was none.
	return func(t *testing.T) {
		if open := open.Load(); open < 200 {
			t.Errorf("only %d clients are open", open)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
