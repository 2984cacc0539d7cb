package pooler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// A PgBouncer that is told to end, by either signal, does so when its customers are gone: the agent, which looks at it all the
// time, is no client that it waits for. Meanwhile the agent says so, and still ends customers' connections.
func TestPgBouncerThatIsToldToEndIsLetGo(t *testing.T) {
	s := realStack(t)
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan error, 10)
	var wg sync.WaitGroup
	read := func(context.Context) (State, error) { return s.defaultState(), nil }
	wg.Go(func() { s.pooler.Watch(ctx, 200*time.Millisecond, read, func(err error) { changes <- err }) })
	defer wg.Wait()
	defer cancel()
	check.Eventually(t, "nobody is seen to listen", func() bool {
		open, known := listening(s.settings.ListenPort)
		return open && known
	})
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		time.Sleep(300 * time.Millisecond) // Watch has looked since the start
		customer := s.client("shop", "shop", "")
		defer customer.Close()
		tx := check.Must(customer.BeginTx(t.Context(), nil))(t)
		check.NoError(t, syscall.Kill(s.bouncer.Pid(), how))
		if err := changed(t, changes); !errors.Is(err, ErrLeaving) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", how, err)
		}
		select {
		case <-s.bouncer.Done():
			t.Fatalf("%s: PgBouncer has not waited for its customer", how)
		default:
		}
		if err := s.pooler.Evict(t.Context(), OfLogin("shop")); err != nil && !errors.Is(err, ErrUnreachable) { // it may have ended
			t.Error(err)
		}
		_ = tx.Rollback()
		select {
		case <-s.bouncer.Done():
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: PgBouncer does not end", how)
		}
		if err := changed(t, changes); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrLeaving) {
			t.Errorf("%s, after its end: %v", how, err)
		}
		check.NoError(t, s.bouncer.Start(context.WithoutCancel(ctx)))
		if err := changed(t, changes); err != nil {
			t.Errorf("%s, after the start: %v", how, err)
		}
	}
}

// One whose port this machine does not have is kept: nothing says that it is told to end.
func TestPgBouncerThatWasNeverSeenToListenIsKept(t *testing.T) {
	s := realStack(t)
	elsewhere := New(s.settings, s.owner)
	defer elsewhere.Close()
	if err := elsewhere.letGo(t.Context(), true); err != nil || elsewhere.lettingGo.Load() {
		t.Errorf("it is let go: %v", err)
	}
}

func changed(t *testing.T, changes <-chan error) error {
	t.Helper()
	select {
	case err := <-changes:
		return err
	case <-time.After(check.Patience):
		t.Fatal("Watch has not noticed a change")
		return nil
	}
}

func TestWhoListensIsReadFromTheKernelsTable(t *testing.T) {
	const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
	const listener = "   0: 00000000:1920 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
	const six = "   0: 00000000000000000000000000000000:1920 00000000000000000000000000000000:0000 0A 00000000:00000000\n"
	const client = "   1: 0100007F:1920 0100007F:D8CB 01 00000000:00000000 00:00000000 00000000  1001\n"
	for what, c := range map[string]struct {
		table string
		want  bool
	}{
		"a listener":                   {heading + listener, true},
		"after another":                {heading + strings.Replace(listener, "1920", "0016", 1) + listener, true},
		"IPv6":                         {heading + six, true},
		"connections alone":            {heading + client, false},
		"nothing":                      {heading, false},
		"another port that ends alike": {heading + strings.Replace(listener, ":1920", ":11920", 1), false},
	} {
		if got := lists(strings.NewReader(c.table), 0x1920); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// FuzzWhoListens holds that no table is too odd to be read.
func FuzzWhoListens(f *testing.F) {
	f.Add("  sl  local_address\n   0: 00000000:1920 00000000:0000 0A\n", 6432)
	f.Add(":::\n\n0A 0A 0A 0A", 0)
	f.Fuzz(func(t *testing.T, table string, port int) {
		if lists(strings.NewReader(table), port) && !strings.Contains(table, listens) {
			t.Error("somebody listens in a table without listeners")
		}
	})
}
