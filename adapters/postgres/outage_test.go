package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestRestartUnderLoad restarts the metadata database, once in order and once by a crash, while eight workers write and
// read. Errors may be seen meanwhile; afterwards everything works by itself, and each write that was confirmed is there.
func TestRestartUnderLoad(t *testing.T) {
	pg := clustertest.New(t, nil)
	check.NoError(t, postgres.Migrate(t.Context(), pg.URL("postgres")))
	config := postgres.Config{URL: pg.URL("postgres"), MaxConnections: 8, ConnectTimeout: time.Second}
	store := check.Must(postgres.Open(t.Context(), config))(t)
	defer store.Close()
	load := newLoad(store, 1)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 8 {
		running.Go(func() { load.work(ctx) })
	}
	for _, mode := range []cluster.StopMode{cluster.Fast, cluster.Immediate} {
		load.awaitWrites(t, 50)
		check.NoError(t, pg.Stop(t.Context(), mode))
		time.Sleep(300 * time.Millisecond)
		check.NoError(t, pg.Start(t.Context()))
	}
	load.awaitWrites(t, 50)
	stop()
	running.Wait()
	load.check(t, pg.URL("postgres"))
}

// load writes one audit entry a transaction, whose details count on in a row that every transaction locks.
type load struct {
	store   *postgres.Store
	entropy *fakeentropy.Entropy
	written atomic.Int64
	failed  atomic.Int64

	mu        sync.Mutex
	confirmed map[id.AuditID]bool
	unknown   map[id.AuditID]bool
	refused   map[id.AuditID]bool
}

func newLoad(s *postgres.Store, seed uint64) *load {
	return &load{
		store: s, entropy: fakeentropy.Seeded(seed),
		confirmed: map[id.AuditID]bool{}, unknown: map[id.AuditID]bool{}, refused: map[id.AuditID]bool{},
	}
}

func (l *load) work(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		entry := id.FromBytes[id.AuditID](l.entropy.UUID())
		err := l.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Switches().Grants(ctx, ""); err != nil {
				return err
			}
			return tx.Audit().Add(ctx, audit.Entry{ID: entry, At: time.Unix(0, 0).UTC(), Actor: audit.System, Action: "tested"})
		})
		l.note(ctx, entry, err)
		_ = l.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Servers().List(ctx)
			return err
		})
	}
}

func (l *load) note(ctx context.Context, entry id.AuditID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.confirmed[entry] = true
		l.written.Add(1)
	case errors.Is(err, pgdb.ErrCommitUnknown) || ctx.Err() != nil:
		l.unknown[entry] = true
	default:
		l.refused[entry] = true
		l.failed.Add(1)
	}
}

// awaitWrites waits until the load has written n times more.
func (l *load) awaitWrites(t *testing.T, n int64) {
	t.Helper()
	want := l.written.Load() + n
	check.Eventually(t, "the store has not recovered", func() bool { return l.written.Load() >= want })
}

func (l *load) check(t *testing.T, url string) {
	t.Helper()
	db := clustertest.Database{URL: url}.Open(t)
	rows := check.Must(db.Query("SELECT id FROM audit_entries"))(t)
	defer rows.Close()
	stored := map[id.AuditID]bool{}
	for rows.Next() {
		var entry id.AuditID
		check.NoError(t, rows.Scan(&entry))
		stored[entry] = true
		if l.refused[entry] {
			t.Errorf("%s is stored although its transaction failed", entry)
		}
	}
	for entry := range l.confirmed {
		if !stored[entry] {
			t.Errorf("%s was confirmed and is lost", entry)
		}
	}
	t.Logf("%d confirmed, %d failed, %d of unknown outcome", len(l.confirmed), len(l.refused), len(l.unknown))
}

// TestNotifierOutlivesARestart wakes whoever waits when the server is back: what was sent meanwhile is lost.
func TestNotifierOutlivesARestart(t *testing.T) {
	pg := clustertest.New(t, nil)
	notifier := check.Must(postgres.NewNotifier(postgres.Config{URL: pg.URL("postgres")}))(t)
	defer notifier.Close()
	wake, stop := notifier.Wake()
	defer stop()
	announced := func() {
		t.Helper()
		deadline := time.After(check.Patience)
		for {
			clustertest.Exec(t, pg.URL("postgres"), "SELECT pg_notify('pgherd_operations', '')")
			select {
			case <-wake:
				return
			case <-deadline:
				t.Fatal("the waiter was not woken")
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	announced()
	check.NoError(t, errors.Join(pg.Stop(t.Context(), cluster.Fast), pg.Start(t.Context())))
	select {
	case <-wake:
	case <-time.After(check.Patience):
		t.Fatal("nobody was woken after the reconnect")
	}
	announced()
}

// TestAlteredTable changes the type of a column under prepared statements: each connection has a plan for the old one.
func TestAlteredTable(t *testing.T) {
	db := migrated(t)
	store := open(t, db)
	var all sync.WaitGroup
	use := func() error {
		err := store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Servers().List(ctx)
			return err
		})
		return errors.Join(err, store.View(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Servers().List(ctx)
			return err
		}))
	}
	for _, kind := range []string{"text", "varchar(200)", "text"} {
		clustertest.Exec(t, db.URL, "ALTER TABLE servers ALTER COLUMN agent_url TYPE "+kind)
		for range 6 {
			all.Go(func() {
				if err := use(); err != nil {
					t.Errorf("after the column became %s: %v", kind, err)
				}
			})
		}
		all.Wait()
	}
}

// TestBrief runs what is not prepared yet in a transaction that has the only connection, and outside of one.
func TestBrief(t *testing.T) {
	c := postgres.Config{URL: migrated(t).URL, MaxConnections: 1, Brief: true}
	store := check.Must(postgres.Open(t.Context(), c))(t)
	defer func() { check.NoError(t, store.Close()) }()
	user := account.User{ID: "11111111-1111-4111-8111-111111111111", Email: "a@example.com", Name: "A"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check.NoError(t, store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Accounts().AddUser(ctx, user) }))
	check.NoError(t, store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Accounts().User(ctx, user.ID)
		if got.Email != user.Email {
			t.Errorf("the user is %+v", got)
		}
		return err
	}))
}

// TestDeadlockRunsAgain locks two accounts in opposite orders: PostgreSQL ends one transaction, which runs again.
func TestDeadlockRunsAgain(t *testing.T) {
	store := open(t, migrated(t))
	entropy := fakeentropy.New()
	var accounts [2]id.AccountID
	for i := range accounts {
		user := account.User{ID: id.FromBytes[id.UserID](entropy.UUID()), Email: string(rune('a'+i)) + "@example.com", Name: "A"}
		accounts[i] = id.FromBytes[id.AccountID](entropy.UUID())
		err := store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Accounts().AddUser(ctx, user); err != nil {
				return err
			}
			return tx.Accounts().Add(ctx, account.Account{ID: accounts[i], OwnerID: user.ID, Plan: account.Free})
		})
		check.NoError(t, err)
	}
	var runs atomic.Int64
	var both, all sync.WaitGroup
	both.Add(2)
	for i := range 2 {
		all.Go(func() {
			met := sync.OnceFunc(func() { both.Done(); both.Wait() })
			err := store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				runs.Add(1)
				if _, err := tx.Accounts().LockForQuota(ctx, accounts[i]); err != nil {
					return err
				}
				met()
				_, err := tx.Accounts().LockForQuota(ctx, accounts[1-i])
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if runs.Load() < 3 {
		t.Errorf("%d runs: there was no deadlock", runs.Load())
	}
}
