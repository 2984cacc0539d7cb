package abuse_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
)

// ofElsewhere are what a login can store for itself in a database where it may not even connect.
var ofElsewhere = []string{"application_name", "search_path"}

// longValue is more than half of what the manifest of a backup may be.
const longValue = 140_000_000

// storeElsewhere stores settings in a bystander's database. The service takes them back within seconds.
func storeElsewhere(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "settings")
	db := m.at(t, d.Name, d.Username, d.Password)
	// PgBouncer cuts whoever is sent a notice of that length.
	const store = `DO $$ BEGIN PERFORM set_config('client_min_messages', 'error', true);
		EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE bystander SET %s = %%L', repeat('x', %d)); END $$`
	for n, name := range ofElsewhere {
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		_, err := db.ExecContext(ctx, fmt.Sprintf(store, name, longValue))
		cancel()
		if n == 0 { // the second may be ended for what the first has written
			noError(t, err)
		}
	}
	return func(t *testing.T) {
		const stored = `SELECT s.setrole::regrole FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
			WHERE d.datname = 'bystander' AND s.setrole = $1::regrole AND pg_column_size(s.setconfig) > 100000`
		check.Eventually(t, "it stays stored", func() bool {
			return len(must(stack.Column(soon(t), m.superuser(t), stored, d.Username))(t)) == 0
		})
	}
}
