package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// backWithin is how long after a promotion every host writes again.
const backWithin = 20 * time.Second

// TestFailover promotes the standby of a metadata server whose primary ends in one way or another, while two hosts write and
// listen. Both write to the new primary soon, and so does a host that starts then. What was confirmed before is there, and what
// failed is not. A primary that comes back is not gone back to.
func TestFailover(t *testing.T) {
	for how, c := range map[string]struct {
		end  func(t *testing.T, p clustertest.Pair)
		back func(t *testing.T, p clustertest.Pair)
		// wakes says that who listened to the old primary has noticed by then, which takes longer where that hangs.
		wakes bool
	}{
		"killed": {
			func(t *testing.T, p clustertest.Pair) { check.NoError(t, p.Primary.Kill()) },
			func(t *testing.T, p clustertest.Pair) { p.Demote(t) },
			true,
		},
		"hanging": {
			func(t *testing.T, p clustertest.Pair) { check.NoError(t, p.Primary.Freeze()) },
			func(t *testing.T, p clustertest.Pair) { check.NoError(t, p.Primary.Thaw()) },
			false,
		},
		"demoted": {
			func(t *testing.T, p clustertest.Pair) {
				clustertest.Exec(t, p.Primary.URL("postgres"), "ALTER SYSTEM SET default_transaction_read_only = on",
					"SELECT pg_reload_conf()")
			},
			func(t *testing.T, p clustertest.Pair) { // until then the hosts may listen to it
				check.NoError(t, p.Primary.Stop(t.Context(), cluster.Fast))
				p.Demote(t)
			},
			true,
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := clustertest.NewPair(t, func(primary *cluster.Postgres) {
				check.NoError(t, postgres.Migrate(t.Context(), primary.URL("postgres")))
			})
			failover(t, p, c.end, c.back, c.wakes)
		})
	}
}

// metadataHost is what a host of the control plane has open.
type metadataHost struct {
	load *load
	wake <-chan struct{}
}

func failover(t *testing.T, p clustertest.Pair, end, back func(*testing.T, clustertest.Pair), wakes bool) {
	both := postgres.Config{URL: both(p), MaxConnections: 8, StatementTimeout: time.Second, ConnectTimeout: 2 * time.Second}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	hosts := make([]metadataHost, 2)
	for i := range hosts {
		store := check.Must(postgres.Open(t.Context(), both))(t)
		t.Cleanup(func() { _ = store.Close() })
		notifier := check.Must(postgres.NewNotifier(both))(t)
		t.Cleanup(func() { check.NoError(t, notifier.Close()) })
		hosts[i].load = newLoad(store, uint64(i))
		hosts[i].wake, _ = notifier.Wake()
		for range 4 {
			running.Go(func() { hosts[i].load.work(ctx) })
		}
	}
	for _, h := range hosts {
		h.load.awaitWrites(t, 20)
	}
	end(t, p)
	p.Promote(t)
	promoted := time.Now()
	for _, h := range hosts {
		h.load.awaitWrites(t, 20)
	}
	if took := time.Since(promoted); took > backWithin {
		t.Errorf("the hosts wrote again after %s", took)
	} else {
		t.Logf("the hosts wrote again after %s", took)
	}
	back(t, p)
	for _, h := range hosts {
		if wakes {
			awaitWake(t, p.Standby.URL("postgres"), h.wake)
		}
	}
	late := check.Must(postgres.Open(t.Context(), both))(t)
	check.NoError(t, late.Close())
	for _, h := range hosts {
		h.load.awaitWrites(t, 20)
	}
	stop()
	running.Wait()
	for _, h := range hosts {
		h.load.check(t, p.Standby.URL("postgres"))
	}
}

// both is a URL that names both servers, as libpq takes it.
func both(p clustertest.Pair) string {
	return strings.Replace(p.Primary.URL("postgres"), p.Primary.Address(),
		fmt.Sprintf("%s,%s", p.Primary.Address(), p.Standby.Address()), 1)
}

// awaitWake announces work until a host that listens is woken.
func awaitWake(t *testing.T, url string, wake <-chan struct{}) {
	t.Helper()
	deadline := time.After(check.Patience)
	for {
		clustertest.Exec(t, url, "SELECT pg_notify('pgherd_operations', '')")
		select {
		case <-wake:
			return
		case <-deadline:
			t.Fatal("the waiter was not woken")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// TestACommitIsNeverSaidToBeDoneEarly commits while the standby hangs, for a caller who gives up during that: had the driver
// cancelled the COMMIT, PostgreSQL would have said that it is done. Only the COMMIT hangs, so only that may run into a time.
func TestACommitIsNeverSaidToBeDoneEarly(t *testing.T) {
	p := clustertest.NewPair(t, func(primary *cluster.Postgres) {
		check.NoError(t, postgres.Migrate(t.Context(), primary.URL("postgres")))
	})
	config := postgres.Config{URL: both(p), StatementTimeout: 2 * time.Second}
	store := check.Must(postgres.Open(t.Context(), config))(t)
	defer store.Close()
	check.NoError(t, p.Standby.Freeze())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		defer time.AfterFunc(time.Second, cancel) // once the COMMIT is under way
		return tx.Audit().Add(ctx, audit.Entry{ID: "00000000-0000-4000-8000-000000000001", Actor: audit.System, Action: "tested"})
	})
	if !errors.Is(err, pgdb.ErrCommitUnknown) || !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("the commit ended with %v", err)
	}
}

// TestUnavailable says what a store that cannot be written to is to its callers, and of which servers it speaks.
func TestUnavailable(t *testing.T) {
	p := clustertest.NewPair(t, func(primary *cluster.Postgres) {
		check.NoError(t, postgres.Migrate(t.Context(), primary.URL("postgres")))
	})
	store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: both(p)}))(t)
	defer store.Close()
	check.NoError(t, p.Primary.Kill())
	write := func(ctx context.Context) error {
		return store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			return tx.Audit().Add(ctx, audit.Entry{ID: "00000000-0000-4000-8000-000000000001", Actor: audit.System, Action: "tested"})
		})
	}
	err := write(t.Context())
	if !errors.Is(err, ports.ErrUnavailable) || strings.Contains(err.Error(), "\n") ||
		strings.Contains(err.Error(), p.Primary.Password()) {
		t.Errorf("without a primary: %v", err)
	}
	for _, said := range []string{p.Primary.Address(), p.Standby.Address() + ": server is in hot standby mode"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("%v does not say %s", err, said)
		}
	}
	_, err = postgres.Open(t.Context(), postgres.Config{URL: p.Standby.URL("postgres")})
	if err == nil || !strings.Contains(err.Error(), p.Standby.Address()) {
		t.Errorf("a standby alone was opened: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := write(soon); !errors.Is(err, ports.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in too little time: %v", err)
	}
}
