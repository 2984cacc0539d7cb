package postgres_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// template is an empty database with the schema, from which each test's is copied.
var template struct {
	sync.Once
	stands bool
}

// migrated is an empty database with the schema.
func migrated(t testing.TB) clustertest.Database {
	t.Helper()
	const name = "migrated"
	template.Do(func() {
		pg := clustertest.Postgres(t)
		clustertest.Exec(t, pg.URL("postgres"), "CREATE DATABASE "+name)
		check.NoError(t, postgres.Migrate(t.Context(), pg.URL(name)))
		template.stands = true
	})
	if !template.stands {
		t.Fatal("there is no schema; see the first test")
	}
	return clustertest.Copy(t, name)
}

func open(t testing.TB, db clustertest.Database) *postgres.Store {
	t.Helper()
	store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: db.URL}))(t)
	t.Cleanup(func() {
		check.NoError(t, store.Close())
	})
	return store
}

// awaitLockWait waits until a session of the database waits for a lock.
func awaitLockWait(t testing.TB, db *sql.DB) {
	t.Helper()
	const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	check.Eventually(t, "nobody waits for a lock", func() bool {
		var waiting int
		check.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&waiting))
		return waiting > 0
	})
}

// populate makes one account, one full-account key and so many databases, each with a queued operation.
func populate(t testing.TB, db clustertest.Database, databases int) (account.Credential, database.Viewer) {
	t.Helper()
	_, credential := account.NewKey(account.AccountKey, fakeentropy.New().Base62(account.KeyCharacters))
	clustertest.Exec(t, db.URL,
		`INSERT INTO users (id, email, name, created_at)
			SELECT '00000000-0000-4000-8000-000000000001', 'a@example.com', 'A', 'epoch'`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT '00000000-0000-4000-8000-000000000002', id, 'business', 'epoch' FROM users`,
		`INSERT INTO servers (id, name, agent_url, sealed_secret, sealed_archive_key, ca, public_host, public_port,
				capacity, enabled, created_at)
			SELECT '00000000-0000-4000-8000-000000000003', 's', 'u', '', '', '', 'h', 1, 100000, true, 'epoch'`,
		fmt.Sprintf(`INSERT INTO api_keys (id, kind, account_id, user_id, label, scope, hash, created_at)
			SELECT '%s', 'account', id, owner_id, 'l', 'full', '\x%x', 'epoch' FROM accounts`, credential.ID, credential.Hash),
		fmt.Sprintf(`INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status,
				created_at, connection_cap, size_bytes, access_generation, allowlist_generation, allowlist_applied)
			SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, a.id, s.id, 'n' || n,
				'd', 'managed', '', 'none', 'active', 'epoch', 0, 0, 0, 0, 0
			FROM accounts a, servers s, generate_series(1, %d) n`, databases),
		`INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress, input, result, error_code,
				error_text, actor, request_id, created_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
			SELECT d.id, d.account_id, d.id, d.server_id, 'backup', 'queued', 'queued', 0, 'null', 'null', '', '',
				'x', 'r', 'epoch', false, '', 0, 0, 'epoch' FROM databases d`,
		"ANALYZE")
	return credential, database.Viewer{
		AccountID: "00000000-0000-4000-8000-000000000002", UserID: "00000000-0000-4000-8000-000000000001",
		KeyID: credential.ID, Scope: account.FullAccount,
	}
}
