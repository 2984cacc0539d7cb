package postgres_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// PostgreSQL stores an address only in the form that the core has checked, whatever it folds in the locale of the database.
func TestOnlyTheStoredFormOfAnAddressIsStored(t *testing.T) {
	db := migrated(t).Open(t)
	const add = `INSERT INTO users (id, email, name, created_at) VALUES (gen_random_uuid(), $1, 'Ada', '2026-01-01Z')`
	for _, email := range []string{
		"Ada@example.org", "ADA@EXAMPLE.ORG", "\u212aim@example.org", "\u017fam@example.org", "\u0130d@example.org",
		"\u0131d@example.org", "\uff4bim@example.org", "k\u00eem@example.org", "ada@example.org ", "ada@example.org\n", "",
	} {
		if _, err := db.Exec(add, email); err == nil {
			t.Errorf("%q is stored", email)
		}
	}
	check.Must(db.Exec(add, "kim+i~s@example.org"))(t)
	var stored int
	check.NoError(t, db.QueryRow("SELECT count(*) FROM users WHERE email = $1", "kim+i~s@example.org").Scan(&stored))
	if stored != 1 {
		t.Error("the address is not found")
	}
}
