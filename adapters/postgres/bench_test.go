package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// populate makes one account, one full-account key and so many databases, each with a queued operation.
func populate(t testing.TB, db clustertest.Database, databases int) (account.Credential, ports.Viewer) {
	t.Helper()
	_, credential := account.NewKey(account.AccountKey, fakeentropy.New().Base62(account.KeyCharacters))
	clustertest.Exec(t, db.URL,
		`INSERT INTO users SELECT '00000000-0000-4000-8000-000000000001', 'a@example.com', 'A', 'epoch'`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT '00000000-0000-4000-8000-000000000002', id, 'business', 'epoch' FROM users`,
		`INSERT INTO servers SELECT '00000000-0000-4000-8000-000000000003', 's', 'u', '', '', 'h', 1, 100000, true, 'epoch'`,
		fmt.Sprintf(`INSERT INTO api_keys (id, kind, account_id, user_id, label, scope, hash, created_at)
			SELECT '%s', 'account', id, owner_id, 'l', 'full', '\x%x', 'epoch' FROM accounts`, credential.ID, credential.Hash),
		fmt.Sprintf(`INSERT INTO databases SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, a.id, s.id, 'n' || n,
			'd', 'managed', '', 'none', 'active', 'epoch', 0, 0, NULL, NULL, 0, 0, 0, 0, 0, false
			FROM accounts a, servers s, generate_series(1, %d) n`, databases),
		`INSERT INTO operations SELECT d.id, d.account_id, d.id, 'backup', 'queued', 'queued', 0, 'null', 'null', '', '', 'x', 'r',
			'epoch', NULL, NULL, false, '', 0, NULL, 0, 'epoch' FROM databases d`,
		"ANALYZE")
	return credential, ports.Viewer{
		AccountID: "00000000-0000-4000-8000-000000000002", UserID: "00000000-0000-4000-8000-000000000001",
		KeyID: credential.ID, Scope: account.FullAccount,
	}
}

// BenchmarkAdmitAndReach is what a read of one database costs the store.
func BenchmarkAdmitAndReach(b *testing.B) {
	db := migrated(b)
	credential, viewer := populate(b, db, 5000)
	store := open(b, db)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			readOne(b, store, credential, viewer)
		}
	})
}

// BenchmarkClaim claims from a queue of many operations, as eight workers do.
func BenchmarkClaim(b *testing.B) {
	db := migrated(b)
	populate(b, db, 20_000)
	store := open(b, db)
	b.ResetTimer()
	b.SetParallelism(4)
	now := time.Unix(1, 0).UTC()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			err := store.Update(b.Context(), func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Operations().ClaimNext(ctx, "worker", now, time.Microsecond)
				return err
			})
			if err != nil && !errors.Is(err, ports.ErrNoRow) {
				b.Error(err)
			}
		}
	})
}
