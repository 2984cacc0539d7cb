package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// populate makes one account, one full-account key and so many databases, each with a queued operation.
func populate(t testing.TB, db clustertest.Database, databases int) (account.Credential, database.Viewer) {
	t.Helper()
	_, credential := account.NewKey(account.AccountKey, fakeentropy.New().Base62(account.KeyCharacters))
	clustertest.Exec(t, db.URL,
		`INSERT INTO users (id, email, name, created_at)
			SELECT '00000000-0000-4000-8000-000000000001', 'a@example.com', 'A', 'epoch'`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT '00000000-0000-4000-8000-000000000002', id, 'business', 'epoch' FROM users`,
		`INSERT INTO servers (id, name, agent_url, sealed_secret, ca, public_host, public_port, capacity, enabled, created_at)
			SELECT '00000000-0000-4000-8000-000000000003', 's', 'u', '', '', 'h', 1, 100000, true, 'epoch'`,
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

// BenchmarkFindAndReach and BenchmarkLeaseAndReach are what a read of one database costs the store.
func BenchmarkFindAndReach(b *testing.B)  { benchmarkReads(b, false) }
func BenchmarkLeaseAndReach(b *testing.B) { benchmarkReads(b, true) }

func benchmarkReads(b *testing.B, lease bool) {
	db := migrated(b)
	credential, viewer := populate(b, db, 5000)
	store := open(b, db)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			readOne(b, store, credential, viewer, lease)
		}
	})
}

// waitingWork gives so many accounts so many waiting operations, each on a database that is nowhere else.
func waitingWork(t testing.TB, db clustertest.Database, accounts, operations int) {
	t.Helper()
	populate(t, db, 1)
	clustertest.Exec(t, db.URL,
		"DELETE FROM operations", "DELETE FROM operation_lanes",
		fmt.Sprintf(`INSERT INTO users (id, email, name, created_at)
			SELECT md5('u' || n)::uuid, 'u' || n || '@example.com', 'A', 'epoch'
			FROM generate_series(1, %d) n`, accounts),
		fmt.Sprintf(`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT md5('a' || n)::uuid, md5('u' || n)::uuid, 'business', 'epoch' FROM generate_series(1, %d) n`, accounts),
		fmt.Sprintf(`INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress, input, result,
				error_code, error_text, actor, request_id, created_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
			SELECT gen_random_uuid(), md5('a' || 1 + n %% %d)::uuid, gen_random_uuid(), '00000000-0000-4000-8000-000000000003', 'backup',
				'queued', 'queued', 0, 'null', 'null', '', '', 'x', 'r', 'epoch', false, '', 0, 0, 'epoch'
			FROM generate_series(0, %d - 1) n`, accounts, operations),
		"VACUUM FULL operation_lanes", "ANALYZE") // it was changed once for each operation, in one transaction
}

func claimBackup(ctx context.Context, store ports.Store, hold time.Duration) (operation.Operation, error) {
	return claimBackupAt(ctx, store, time.Unix(1, 0).UTC(), hold)
}

func claimBackupAt(
	ctx context.Context, store ports.Store, now time.Time, hold time.Duration,
) (o operation.Operation, err error) {
	err = store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		o, err = tx.Operations().ClaimNext(ctx, ports.OperationClaim{
			Owner: "worker", Now: now, Hold: hold, Kinds: []operation.Kind{"backup"},
		})
		return err
	})
	return o, err
}

// BenchmarkClaim claims from a queue of many operations of many accounts, one after the other, as a process does.
func BenchmarkClaim(b *testing.B) {
	db := migrated(b)
	waitingWork(b, db, 1000, 100_000)
	store := open(b, db)
	b.ResetTimer()
	for range b.N {
		if _, err := claimBackup(b.Context(), store, time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}

// Every account with waiting work is served once before any is served twice.
func TestARoundServesEveryAccount(t *testing.T) {
	db := migrated(t)
	const accounts = 50
	waitingWork(t, db, accounts, 1000)
	store := open(t, db)
	for round := range 3 {
		served := map[id.AccountID]bool{}
		for range accounts {
			o := check.Must(claimBackup(t.Context(), store, time.Hour))(t)
			served[o.AccountID] = true
		}
		if len(served) != accounts {
			t.Errorf("round %d served %d accounts of %d", round+1, len(served), accounts)
		}
	}
}
