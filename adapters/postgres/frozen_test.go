package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// frozenEntropy makes the IDs of what is written.
var frozenEntropy = fakeentropy.Seeded(7)

// TestFrozen stops the metadata server without ending it, while more work waits than there are connections. What is awaited ends
// long before the driver notices, whether anybody watches or not; while it is known, it is refused at once; and when the server
// goes on, so does all.
func TestFrozen(t *testing.T) {
	pg := clustertest.New(t, nil)
	check.NoError(t, postgres.Migrate(t.Context(), pg.URL("postgres")))
	const soon = 6 * time.Second // the driver waits for 12 s
	hosts := map[string]postgres.Config{
		"watched":   {URL: pg.URL("postgres"), MaxConnections: 3, Patience: time.Minute},
		"unwatched": {URL: pg.URL("postgres"), MaxConnections: 3, Patience: time.Second},
	}
	stores := map[string]*postgres.Store{}
	for name, c := range hosts {
		stores[name] = check.Must(postgres.Open(t.Context(), c))(t)
		defer stores[name].Close()
		check.NoError(t, errors.Join(stores[name].Watch(t.Context()), write(ports.Awaited(t.Context()), stores[name])))
	}
	check.NoError(t, pg.Freeze())
	defer func() { _ = pg.Thaw() }() // again, where the test has come to its end
	begun := time.Now()
	var all sync.WaitGroup
	for name, store := range stores {
		for n := range 10 {
			all.Go(func() {
				work := write
				if n%2 == 0 {
					work = read
				}
				err := work(ports.Awaited(t.Context()), store)
				if took := time.Since(begun); !errors.Is(err, ports.ErrUnavailable) || took > soon {
					t.Errorf("%s: %v after %s", name, err, took)
				}
			})
		}
	}
	watched := stores["watched"]
	if err := watched.Watch(t.Context()); !errors.Is(err, ports.ErrUnavailable) || !watched.Away() {
		t.Errorf("the watch ended with %v", err)
	}
	all.Wait()

	begun = time.Now()
	for _, work := range []func(context.Context, *postgres.Store) error{read, write, ping} {
		if err := work(ports.Awaited(t.Context()), watched); !errors.Is(err, ports.ErrUnavailable) {
			t.Errorf("while the server is known to be away: %v", err)
		}
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it was refused after %s", took)
	}
	patient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := read(patient, watched); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("work that nobody waits for: %v", err)
	}

	check.NoError(t, pg.Thaw())
	check.NoError(t, watched.Watch(t.Context()))
	for name, store := range stores {
		if err := errors.Join(read(ports.Awaited(t.Context()), store), write(ports.Awaited(t.Context()), store)); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

func read(ctx context.Context, store *postgres.Store) error {
	return store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Servers().List(ctx)
		return err
	})
}

func write(ctx context.Context, store *postgres.Store) error {
	return store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Switches().Grants(ctx, ""); err != nil {
			return err
		}
		entry := id.FromBytes[id.AuditID](frozenEntropy.UUID())
		return tx.Audit().Add(ctx, audit.Entry{ID: entry, Actor: audit.System, Action: "tested"})
	})
}

func ping(ctx context.Context, store *postgres.Store) error { return store.Ping(ctx) }

// TestARefusedWatch has no connection for the watch: the server answers all the same on those that there are.
func TestARefusedWatch(t *testing.T) {
	db := migrated(t)
	store := open(t, db)
	check.NoError(t, read(ports.Awaited(t.Context()), store))
	clustertest.Exec(t, db.Cluster.URL("postgres"), "ALTER DATABASE "+db.Name+" ALLOW_CONNECTIONS false")
	if err := store.Watch(t.Context()); err == nil || store.Away() {
		t.Errorf("the watch ended with %v", err)
	}
	check.NoError(t, read(ports.Awaited(t.Context()), store))
}
