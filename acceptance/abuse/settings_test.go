package abuse_test

import (
	"fmt"
	"testing"
)

// ofElsewhere are what a login can store for itself in a database where it may not even connect.
var ofElsewhere = []string{"application_name", "search_path"}

// longValue is more than half of what the manifest of a backup may be.
const longValue = 140_000_000

// storeElsewhere stores settings in a bystander's database, as long as PostgreSQL takes them.
func storeElsewhere(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "settings")
	db := m.at(t, d.Name, d.Username, d.Password)
	const store = `DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE bystander SET %s = %%L', repeat('x', %d)); END $$`
	for _, name := range ofElsewhere { // the second may be ended for what the first has written
		_, err := db.ExecContext(soon(t), fmt.Sprintf(store, name, longValue))
		t.Logf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		must(m.superuser(t).Exec(fmt.Sprintf(`ALTER ROLE %q IN DATABASE bystander RESET ALL`, d.Username)))(t)
	})
	return func(t *testing.T) {
		const stored = `SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
			WHERE d.datname = 'bystander' AND s.setrole = $1::regrole`
		var n int
		noError(t, m.superuser(t).QueryRowContext(soon(t), stored, d.Username).Scan(&n))
		if n != 1 {
			t.Error("nothing is stored any more")
		}
	}
}
