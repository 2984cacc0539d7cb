package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestEventsFromBeforeWebhooksGoNowhere upgrades a store that has an event already, while a process from before the upgrade
// still writes.
func TestEventsFromBeforeWebhooksGoNowhere(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 1))(t)
	addAsBefore := func(event id.EventID) {
		clustertest.Exec(t, db.URL, fmt.Sprintf(`INSERT INTO outbox_events
			(id, account_id, database_id, operation_id, name, payload, created_at)
			SELECT '%[1]s', '%[1]s', '%[1]s', '%[1]s', 'backup.succeeded', '{}', 'epoch'`, event))
	}
	addAsBefore("00000000-0000-4000-8000-000000000001")
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	const after = id.EventID("00000000-0000-4000-8000-000000000002")
	addAsBefore(after)
	err := open(t, db).Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		taken, err := tx.Deliveries().TakeEvents(ctx, 10)
		if len(taken) != 1 || taken[0].ID != after {
			t.Errorf("taken were %v, want the event from after the upgrade alone", taken)
		}
		return err
	})
	check.NoError(t, err)
}

// TestOpenOperationsOutliveAnUpgrade has operations that are queued, held and put down when the lanes come, and one that a
// process from before the upgrade adds after it. Each is claimed when it is due, and never before.
func TestOpenOperationsOutliveAnUpgrade(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 5))(t)
	const add = `INSERT INTO operations SELECT d.id, d.account_id, d.id, 'backup', '%s', 'queued', 0, 'null', 'null', '', '', 'x',
		'r', 'epoch', NULL, NULL, false, '', 0, %s, 0, '%s' FROM databases d WHERE d.name = '%s'`
	populate(t, db, 4)
	clustertest.Exec(t, db.URL, "DELETE FROM operations",
		fmt.Sprintf(add, "queued", "NULL", "epoch", "n1"),
		fmt.Sprintf(add, "running", "'1970-01-01 00:01:00Z'", "epoch", "n2"),
		fmt.Sprintf(add, "running", "NULL", "1970-01-01 00:02:00Z", "n3"))
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	store := open(t, db)
	claimed := func(at time.Time) (names string) {
		t.Helper()
		for {
			o, err := claimBackupAt(t.Context(), store, at, time.Hour)
			if errors.Is(err, ports.ErrNoRow) {
				return names
			}
			check.NoError(t, err)
			names += string(o.ID[len(o.ID)-1:])
			if o.ServerID == "" {
				t.Errorf("operation %s has no server", o.ID)
			}
		}
	}
	for _, c := range []struct {
		at   time.Duration
		want string
	}{{0, "1"}, {59 * time.Second, ""}, {time.Minute, "2"}, {119 * time.Second, ""}, {2 * time.Minute, "3"}} {
		if got := claimed(time.Unix(0, 0).Add(c.at).UTC()); got != c.want {
			t.Errorf("claimed after %s: %q, want %q", c.at, got, c.want)
		}
	}
	clustertest.Exec(t, db.URL, `INSERT INTO operations (id, account_id, database_id, kind, status, stage, progress, input, result,
			error_code, error_text, actor, request_id, created_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
		SELECT d.id, d.account_id, d.id, 'backup', 'queued', 'queued', 0, 'null', 'null', '', '', 'x', 'r', 'epoch', false, '', 0,
			0, 'epoch' FROM databases d WHERE d.name = 'n4'`)

	if got := claimed(time.Unix(180, 0).UTC()); got != "4" {
		t.Errorf("claimed of what came later: %q", got)
	}
}

// TestAddressesThatDifferInCase upgrades a store in which addresses were written by hand: of several that are the same without
// regard to case, the oldest user has the address, and nobody else can take it, neither here nor on a host from before.
func TestAddressesThatDifferInCase(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 7))(t)
	add := func(n int, email string, day int) string {
		return fmt.Sprintf(`INSERT INTO users (id, email, name, created_at)
			VALUES ('00000000-0000-4000-8000-%012d', '%s', 'N', '2026-01-%02d')`, n, email, day)
	}
	clustertest.Exec(t, db.URL, add(1, "ada@example.org", 3), add(2, "Ada@Example.org", 1), add(3, "ADA@example.org", 2),
		add(4, "Bob@example.org", 1))
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	store := open(t, db)
	for email, want := range map[string]int{"ada@example.org": 2, "bob@example.org": 4} {
		u, err := ports.Read(t.Context(), store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
			return tx.Accounts().UserByEmail(ctx, email)
		})
		if err != nil || u.ID != id.UserID(fmt.Sprintf("00000000-0000-4000-8000-%012d", want)) {
			t.Errorf("%s is %+v, %v", email, u, err)
		}
	}
	for n, email := range []string{"aDa@example.org", "bob@example.org"} {
		if _, err := db.Open(t).Exec(add(n+5, email, 4)); err == nil {
			t.Errorf("%s was taken once more", email)
		}
	}
	clustertest.Exec(t, db.URL, add(9, "eve@example.org", 4))
}

// TestStaleBindings upgrades a store with a key that is bound to what its user is a member of, was a member of, and owns.
func TestStaleBindings(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 13))(t)
	populate(t, db, 3)
	clustertest.Exec(t, db.URL,
		`INSERT INTO users (id, email, name, created_at)
			SELECT '00000000-0000-4000-8000-000000000011', 'b@example.com', 'B', 'epoch'`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT '00000000-0000-4000-8000-000000000012', '00000000-0000-4000-8000-000000000011', 'pro', 'epoch'`,
		`INSERT INTO api_keys (id, kind, account_id, user_id, label, scope, hash, created_at)
			SELECT 'KKKKKKKK', 'account', id, owner_id, 'l', 'selected', decode(repeat('00', 32), 'hex'), 'epoch'
			FROM accounts WHERE plan = 'pro'`,
		`UPDATE databases SET account_id = '00000000-0000-4000-8000-000000000012' WHERE name = 'n3'`,
		`INSERT INTO memberships (id, database_id, user_id, role, created_at)
			SELECT id, id, '00000000-0000-4000-8000-000000000011', 'viewer', 'epoch' FROM databases WHERE name = 'n1'`,
		`INSERT INTO key_databases (key_id, database_id) SELECT 'KKKKKKKK', id FROM databases`)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	var left string
	check.NoError(t, db.Open(t).QueryRow(`SELECT string_agg(d.name, ' ' ORDER BY d.name)
		FROM key_databases b JOIN databases d ON d.id = b.database_id`).Scan(&left))
	if left != "n1 n3" {
		t.Errorf("the key is bound to %s, want n1 n3", left)
	}
}

// TestDatabasesWithoutOverlays has databases that hosts of the version before add and change, which know nothing of overlays. An
// overlay has an ID, and without one there is no overlay.
func TestDatabasesWithoutOverlays(t *testing.T) {
	db := migrated(t)
	populate(t, db, 2)
	store := open(t, db)
	check.NoError(t, store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		for n, want := range []database.Overlay{
			{OverlayStatus: database.NoOverlay},
			{OverlayID: "00000000-0000-4000-8000-000000000009", OverlayStatus: database.OverlayReserved, OverlayGeneration: 7},
		} {
			r, err := tx.Databases().Lock(ctx, id.DatabaseID(fmt.Sprintf("10000000-0000-4000-8000-%012d", n+1)))
			if err != nil {
				return err
			}
			if r.Overlay != (database.Overlay{OverlayStatus: database.NoOverlay}) {
				t.Errorf("it has the overlay %+v", r.Overlay)
			}
			r.Overlay = want
			if err := tx.Databases().Save(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}))
	const save = "UPDATE databases SET status = 'stopped', role_generation = 8 WHERE name = 'n2'"
	clustertest.Exec(t, db.URL, save)
	check.NoError(t, store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, "10000000-0000-4000-8000-000000000002")
		if r.OverlayGeneration != 7 || r.Status != database.Stopped {
			t.Errorf("after a change by an older host: %+v", r.Overlay)
		}
		return err
	}))
	for _, set := range []string{"overlay_status = 'none'", "overlay_id = NULL", "overlay_generation = -1"} {
		if _, err := db.Open(t).Exec("UPDATE databases SET " + set + " WHERE name = 'n2'"); err == nil {
			t.Errorf("%s was stored", set)
		}
	}
}
