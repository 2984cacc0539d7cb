package guard_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// holder is a customer who holds on to every database that appears on the server, whosever it is: with an open transaction that
// stores a setting of their own in it.
type holder struct {
	mu   sync.Mutex
	held map[string]bool
}

// holding begins to hold databases whose names begin like this, until the test ends.
func holding(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, prefixes string) *holder {
	t.Helper()
	h, db := &holder{held: map[string]bool{}}, s.Owner(t, w)
	db.SetMaxOpenConns(0)
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			h.look(ctx, db, "^("+prefixes+")")
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return h
}

func (h *holder) look(ctx context.Context, db *sql.DB, pattern string) {
	names, _ := pg.Column(ctx, db, "SELECT datname FROM pg_database WHERE datname ~ $1", pattern) // it looks again
	for _, name := range names {
		if h.has(name) {
			continue
		}
		tx, err := db.BeginTx(ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", name))
		}
		if err == nil {
			h.mu.Lock()
			h.held[name] = true
			h.mu.Unlock()
		}
	}
}

func (h *holder) has(prefix string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.held {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Whoever holds databases that are being made, copied or dropped keeps nobody from anything.
func TestStrangersHoldNoDatabase(t *testing.T) {
	s := agenttest.Shared(t)
	h := holding(t, s, s.Made(t, database.SingleLogin), "tmp|verify|restore")
	w := s.Made(t, database.SingleLogin)
	for n := 0; !h.has("tmp_") && n < 20; n++ { // one has this name for a moment
		w = s.Made(t, database.SingleLogin)
	}
	s.WantBackup(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true), command.BackupDone, "")
	s.Restored(t, w)
	for _, prefix := range []string{"tmp_", "verify_", "restore_"} {
		if !h.has(prefix) {
			t.Errorf("nobody held a database %s", prefix)
		}
	}
}
