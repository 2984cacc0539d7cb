package pooler

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// mostWait is what a bystander's query or log-in may take on a busy machine; it is usually some milliseconds.
const mostWait = 10 * time.Second

// bystander is a customer of another database, who works and logs in while strangers come.
type bystander struct {
	stop  func()
	wg    sync.WaitGroup
	times map[string]*atomic.Int64
}

func newBystander(t *testing.T, s *stack) *bystander {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bystander{stop: cancel, times: map[string]*atomic.Int64{"query": {}, "log-in": {}}}
	db := s.client("blog", "blog", "")
	t.Cleanup(func() { _ = db.Close() })
	session := check.Must(db.Conn(ctx))(t)
	b.goOn(ctx, t, "query", func() error { return one(session) })
	b.goOn(ctx, t, "log-in", func() error {
		db := s.client("blog", "blog", "")
		defer db.Close()
		return one(db)
	})
	return b
}

func one(db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) error {
	var n int
	return db.QueryRowContext(context.Background(), "SELECT 1").Scan(&n)
}

// goOn does something again and again until it fails or the bystander rests.
func (b *bystander) goOn(ctx context.Context, t *testing.T, what string, do func() error) {
	b.wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if err := within(mostWait, do); err != nil {
				t.Errorf("a bystander's %s, after %s: %v", what, time.Since(began), err)
				return
			}
			b.times[what].Add(1)
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// within does not wait longer for do. A context cannot bound it: the driver's cancellation waits for PgBouncer too.
func within(most time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(most):
		return errors.New("no answer yet")
	}
}

// rest ends the work, of which there must have been enough.
func (b *bystander) rest(t *testing.T) {
	b.stop()
	b.wg.Wait()
	for what, n := range b.times {
		if n := n.Load(); n < 30 && !t.Failed() {
			t.Errorf("a %s was tried only %d times", what, n)
		}
	}
}
