package pooler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestCrashOfPgBouncerIsRecovered(t *testing.T) {
	s := realStack(t)
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan error, 10)
	var wg sync.WaitGroup
	state := s.defaultState()
	state.Entries[0].Logins[1].MaxConnections = 5
	read := func(context.Context) (State, error) { return state, nil }
	wg.Go(func() { s.pooler.Watch(ctx, 30*time.Millisecond, read, func(err error) { changes <- err }) })
	defer wg.Wait()
	defer cancel()

	check.NoError(t, s.bouncer.Kill())
	if err := <-changes; !errors.Is(err, ErrUnreachable) {
		t.Errorf("after the crash: %v", err)
	}
	if err := s.pooler.Apply(ctx, state); !errors.Is(err, ErrUnreachable) {
		t.Errorf("Apply without PgBouncer: %v", err)
	}
	check.NoError(t, s.bouncer.Start(context.WithoutCancel(ctx)))
	select {
	case err := <-changes:
		if err != nil {
			t.Errorf("after the restart: %v", err)
		}
	case <-time.After(check.Patience):
		t.Fatal("the return of PgBouncer was not noticed")
	}
	if got := limitOf(t, s, "shop_rt"); got != 5 {
		t.Errorf("limit %d after the restart, want 5", got)
	}
	check.NoError(t, s.enter(t, "shop", "shop", ""))
}

// TestStoppedPgBouncerHangsNobody holds that a process that answers nothing ends in the caller's deadline.
func TestStoppedPgBouncerHangsNobody(t *testing.T) {
	s := realStack(t)
	freeze(t, s)
	for name, call := range map[string]func(context.Context) error{
		"ping":    s.pooler.Ping,
		"clients": func(ctx context.Context) error { _, err := s.pooler.Clients(ctx); return err },
		"prove":   func(ctx context.Context) error { return s.pooler.Prove(ctx, "shop", "shop", "shop-pw") },
		"evict":   func(ctx context.Context) error { return s.pooler.Evict(ctx, OfLogin("shop")) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		cancel()
	}
}

func execute(t testing.TB, s *stack, statement string) {
	t.Helper()
	check.Must(s.super.Exec(statement))(t)
}

// freeze stops PgBouncer's process in its tracks until the test ends.
func freeze(t *testing.T, s *stack) {
	t.Helper()
	check.NoError(t, s.bouncer.Freeze())
	t.Cleanup(func() { _ = s.bouncer.Thaw() })
}
