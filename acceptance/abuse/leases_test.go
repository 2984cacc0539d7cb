package abuse_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// How many leases end at once; each takes a deletion, with a backup.
const (
	someLeases = 8
	manyLeases = 100
)

// endLeases has the leases of many previews end at the same time, and looks how many of them are deleted at a time.
func endLeases(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	count := someLeases
	if *figures {
		count = manyLeases
	}
	key := must(m.NewCIKey(soon(t), stack.Account{ID: m.account}, "leases"))(t)
	previews, ci := make([]id.DatabaseID, count), m.with(t, key)
	var making sync.WaitGroup
	for worker := range 2 {
		making.Go(func() {
			for n := worker; n < count; n += 2 {
				previews[n] = must(ci.Previews.Create(soon(t), wire.CreatePreview{Ref: fmt.Sprint("pull/", n)}))(t).Data.DatabaseID
			}
		})
	}
	making.Wait()
	metadata := m.metadata(t)
	must(metadata.ExecContext(soon(t), `UPDATE previews p SET expires_at = now() FROM databases d
		WHERE d.id = p.database_id AND d.account_id = $1`, m.account))(t)
	most := new(atomic.Int64)
	again(t, func(ctx context.Context) {
		if n, err := m.deletions(ctx, metadata, "status IN ('queued', 'running')"); err == nil && n > most.Load() {
			most.Store(n)
		}
		wait(ctx, 20*time.Millisecond)
	})
	return func(t *testing.T) {
		for ended := int64(0); ended == 0; wait(t.Context(), time.Second) {
			ended = must(m.deletions(soon(t), metadata, "status = 'succeeded'"))(t)
			t.Logf("%d of %d previews are deleted, at most %d at a time", ended, count, most.Load())
		}
		if most.Load() != 1 {
			t.Errorf("%d leases were ended at the same time, not one", most.Load())
		}
	}
}

// deletions counts those of the account's databases.
func (m *mallory) deletions(ctx context.Context, metadata *sql.DB, in string) (n int64, err error) {
	err = metadata.QueryRowContext(ctx, "SELECT count(*) FROM operations WHERE account_id = $1 AND kind = 'delete' AND "+in,
		m.account).Scan(&n)
	return n, err
}
