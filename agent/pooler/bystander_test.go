package pooler

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// mostWait is what a bystander's query or log-in may take on a busy machine; it is usually some milliseconds.
const mostWait = 2 * time.Second

// bystander is a customer of another database, who works and logs in while strangers come.
type bystander struct {
	stop func()
	wg   sync.WaitGroup

	mu     sync.Mutex
	waits  map[string][]time.Duration
	failed time.Time // when the first query or log-in began that failed
}

func newBystander(t *testing.T, s *stack) *bystander {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bystander{stop: cancel, waits: make(map[string][]time.Duration)}
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
			err := within(mostWait, do)
			b.note(what, began, err != nil)
			if err != nil {
				t.Errorf("a bystander's %s, after %s: %v", what, time.Since(began), err)
				return
			}
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

func (b *bystander) note(what string, began time.Time, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits[what] = append(b.waits[what], time.Since(began))
	if failed && b.failed.IsZero() {
		b.failed = began
	}
}

// hurt is when the first query or log-in began that failed, or zero.
func (b *bystander) hurt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// rest ends the work and logs how long things took.
func (b *bystander) rest(t *testing.T) {
	b.stop()
	b.wg.Wait()
	for what, waits := range b.waits {
		slices.Sort(waits)
		t.Logf("%d times %s: p50 %s, max %s", len(waits), what, waits[len(waits)/2], waits[len(waits)-1])
		if len(waits) < 100 && b.failed.IsZero() {
			t.Errorf("a %s was tried only %d times", what, len(waits))
		}
	}
}
