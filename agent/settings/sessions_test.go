package settings

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/pg"
)

// A change is settled by a look at its own clients, not by one at those of a change before.
func TestOlderLookSettlesNoNewerChange(t *testing.T) {
	db := ledgertest.New(t)
	x := &Setter{db: db}
	madeIn(t, db, 0)
	since := check.Must(pg.One[time.Time](t.Context(), db, `UPDATE ledger.database
		SET settings_since = clock_timestamp() - interval '1 min', reconnected = true, renewing = true RETURNING settings_since`))(t)
	for _, look := range []struct {
		what string
		seen keepers
		left int
	}{
		{"none", keepers{}, 1},
		{"at a change before", keepers{"d": {since: since.Add(-time.Microsecond)}}, 1},
		{"some are left", keepers{"d": {since: since, clients: []string{"one"}}}, 1},
		{"at this change", keepers{"d": {since: since}}, 0},
	} {
		if left := check.Must(x.settleOlder(t.Context(), look.seen.gone()))(t); left != look.left {
			t.Errorf("%s: %d databases are left, want %d", look.what, left, look.left)
		}
	}
}
