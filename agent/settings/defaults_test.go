package settings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// What a login sets for itself holds at both entries as soon as nobody is connected to the first. Who is, is not ended for it.
func TestDefaultsOfALoginHoldAtBothEntries(t *testing.T) {
	t.Parallel()
	s, other := agenttest.Shared(t), agenttest.Want(database.Managed)
	s.Done(t, other.Create())
	generation := int64(0)
	look := func() { // the loop looks again when another database is configured
		generation++
		s.Done(t, other.Configure(generation, command.Configure{Timeouts: agenttest.Standard}))
		time.Sleep(100 * time.Millisecond)
	}
	w := agenttest.Want(database.Managed)
	s.CreatedWithRoles(t, w)
	reader := w.Present(database.ReadonlyLogin)
	direct := s.Direct(t, w.Name, reader.Username, reader.Password)
	shown := func() string {
		var all []string
		for _, entry := range pooler.EntryNames(w.Name) {
			db := s.Pooled(t, entry, reader.Username, reader.Password)
			for _, name := range []string{"TimeZone", "IntervalStyle", "standard_conforming_strings", "application_name"} {
				all = append(all, agenttest.Shown(t, db, name))
			}
			_ = db.Close()
		}
		return strings.Join(all, ", ")
	}
	before := shown()
	connected := s.PooledOwner(t, w)
	check.Must(connected.Exec("CREATE TEMPORARY TABLE kept ()"))(t)
	for _, set := range []string{
		"TimeZone = 'Asia/Tokyo'", "IntervalStyle = 'iso_8601'", "standard_conforming_strings = off", "application_name = 'mine'",
	} {
		check.Must(direct.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER SET %s", set)))(t)
	}
	for range 3 {
		look()
	}
	check.Must(connected.Exec("TABLE kept"))(t)
	check.NoError(t, connected.Close())
	const want = "Asia/Tokyo, iso_8601, off, mine, Asia/Tokyo, iso_8601, off, mine"
	check.Eventually(t, "the login's own do not hold", func() bool { look(); return shown() == want })
	check.Must(direct.Exec("ALTER ROLE CURRENT_USER RESET ALL"))(t)
	check.Eventually(t, "what is reset is still remembered", func() bool { look(); return shown() == before })
}
