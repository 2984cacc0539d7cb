package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
	"golang.org/x/sync/errgroup"
)

const (
	connectingAtOnce = 32
	// thinking is how long a client does nothing between two statements, on average.
	thinking = 10 * time.Second
	// mostStatement is the 99th percentile that clients of databases keep, whatever the API has to do.
	mostStatement = time.Second
)

// crowd are clients that stay connected through PgBouncer and ask something now and then.
type crowd struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	took   []time.Duration
	failed map[string]int
}

// connect connects so many clients, which are spread over all databases.
func (w *world) connect(ctx context.Context, clients int) (*crowd, error) {
	c := &crowd{failed: map[string]int{}}
	ctx, c.cancel = context.WithCancel(ctx)
	var group errgroup.Group
	group.SetLimit(connectingAtOnce)
	for n := range clients {
		l := w.logins[n%len(w.logins)]
		group.Go(func() error {
			db, err := sql.Open("postgres", w.PoolerURL(l.entry, l.username, l.password))
			if err != nil {
				return err
			}
			conn, err := db.Conn(ctx)
			if err != nil {
				return errors.Join(err, db.Close())
			}
			c.running.Go(func() {
				c.live(ctx, conn)
				_ = conn.Close()
				_ = db.Close()
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		c.cancel()
		c.running.Wait()
		return nil, fmt.Errorf("connecting %d clients: %w", clients, err)
	}
	return c, nil
}

// live asks again and again over the one connection.
func (c *crowd) live(ctx context.Context, conn *sql.Conn) {
	for sleep(ctx, time.Duration(rand.Int64N(int64(2*thinking)))) == nil {
		began := time.Now()
		_, err := conn.ExecContext(ctx, "SELECT 1")
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		if c.took = append(c.took, time.Since(began)); err != nil {
			c.failed[err.Error()]++
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// end disconnects all, and returns what they had for answers.
func (c *crowd) end() *statements {
	c.cancel()
	c.running.Wait()
	return &statements{c.took, c.failed}
}

type statements struct {
	took   []time.Duration
	failed map[string]int
}

func (s *statements) String() string {
	return fmt.Sprintf("%d statements, median %v, p99 %v, failed %v", len(s.took), percentile(s.took, 50).Round(time.Millisecond),
		percentile(s.took, 99).Round(time.Millisecond), s.failed)
}

func (s *statements) kept() error {
	var failed error
	if len(s.failed) > 0 {
		failed = fmt.Errorf("clients of PgBouncer were ended or refused: %v", s.failed)
	}
	if p99 := percentile(s.took, 99); p99 > mostStatement {
		failed = errors.Join(failed, fmt.Errorf("the 99th percentile of statements is %v", p99))
	}
	return failed
}
