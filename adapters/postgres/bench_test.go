package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// crowd is a store with one account, one full-account key and so many databases, each with a queued operation.
func crowd(b *testing.B, databases int) (*postgres.Store, account.Credential, ports.Viewer) {
	b.Helper()
	db := migrated(b)
	_, credential := account.NewKey(account.AccountKey, fakeentropy.New().Base62(account.KeyCharacters))
	clustertest.Exec(b, db.URL,
		`INSERT INTO users SELECT '00000000-0000-4000-8000-000000000001', 'a@example.com', 'A', 'epoch'`,
		`INSERT INTO accounts (id, owner_id, plan, created_at)
			SELECT '00000000-0000-4000-8000-000000000002', id, 'business', 'epoch' FROM users`,
		`INSERT INTO servers SELECT '00000000-0000-4000-8000-000000000003', 's', 'u', '', '', 'h', 1, 100000, true, 'epoch'`,
		fmt.Sprintf(`INSERT INTO api_keys (id, kind, account_id, user_id, label, scope, hash, created_at)
			SELECT '%s', 'account', id, owner_id, 'l', 'full', '\x%x', 'epoch' FROM accounts`, credential.ID, credential.Hash),
		fmt.Sprintf(`INSERT INTO databases SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, a.id, s.id, 'n' || n,
			'd', 'managed', '', 'none', 'active', 'epoch', 0, 0, NULL, NULL, 0, 0, 0
			FROM accounts a, servers s, generate_series(1, %d) n`, databases),
		`INSERT INTO operations SELECT d.id, d.account_id, d.id, 'backup', 'queued', 'queued', 0, 'null', 'null', '', '', 'x', 'r',
			'epoch', NULL, NULL, false, '', 0, NULL, 0, 'epoch' FROM databases d`,
		"ANALYZE")
	viewer := ports.Viewer{
		AccountID: "00000000-0000-4000-8000-000000000002", UserID: "00000000-0000-4000-8000-000000000001",
		KeyID: credential.ID, Scope: account.FullAccount,
	}
	return open(b, db), credential, viewer
}

// BenchmarkAdmitAndReach is what a read of one database costs the store.
func BenchmarkAdmitAndReach(b *testing.B) {
	store, credential, viewer := crowd(b, 5000)
	unlimited := ratelimit.Limit{Count: 1_000_000, Period: time.Second}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a, err := store.Admit(b.Context(), ports.AdmissionRequest{
				Credential: credential, Class: ratelimit.Read, Limit: unlimited, Now: time.Now(),
			})
			if err != nil || !a.Decision.Allowed {
				b.Errorf("not admitted: %v", err)
			}
			err = store.View(b.Context(), func(ctx context.Context, tx ports.Tx) error {
				_, _, err := tx.Databases().Reach(ctx, viewer, "10000000-0000-4000-8000-000000004711")
				return err
			})
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkClaim claims from a queue of many operations, as eight workers do.
func BenchmarkClaim(b *testing.B) {
	store, _, _ := crowd(b, 20_000)
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
