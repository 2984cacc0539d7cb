package abuse_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
)

// The login that is rotated makes a function by which its owner changes it: then the session that is in the way is not its own.
// It sleeps, so that it does not notice when the pooler closes its connection.
const (
	changeFunction = `CREATE OR REPLACE FUNCTION change() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
		$$ BEGIN ALTER ROLE CURRENT_USER PASSWORD 'held'; END $$`
	letCreate    = `GRANT CREATE ON SCHEMA public TO %q`
	holdTheLogin = `BEGIN; SELECT change(); SELECT pg_sleep(600)`
)

// rotationPause keeps a key with eight databases below the default limit, of 120 writes a minute.
const rotationPause = 4 * time.Second

// blockRotations rotates a login of each of eight databases over and over, while a transaction of its owner is in the way.
func blockRotations(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	done := new(atomic.Int64)
	for _, d := range m.databases(t, "blocked", 8) {
		login := must(m.Logins.Reveal(soon(t), d.ID, database.RuntimeLogin))(t)
		owner := m.at(t, d.Name, d.Username, d.Password)
		must(owner.ExecContext(soon(t), fmt.Sprintf(letCreate, login.Username)))(t)
		must(m.at(t, d.Name, login.Username, login.Password).ExecContext(soon(t), changeFunction))(t)
		again(t, func(ctx context.Context) {
			var holding sync.WaitGroup
			holding.Go(func() { _, _ = owner.ExecContext(ctx, holdTheLogin) }) // the rotation ends it
			defer holding.Wait()
			wait(ctx, 200*time.Millisecond)
			if _, err := m.Logins.Rotate(ctx, d.ID, database.RuntimeLogin, wire.Disconnect{ConfirmDisconnect: true}); err == nil {
				done.Add(1)
			}
			wait(ctx, rotationPause)
		})
	}
	// A rotation does not wait for as long as somebody is in its way.
	return func(t *testing.T) {
		if done.Load() == 0 {
			t.Error("none of the blocked rotations has come through")
		}
	}
}
