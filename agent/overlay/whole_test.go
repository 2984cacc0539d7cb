package overlay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/role"
)

// A database with an overlay is verified, restored, stopped, taken out of service and brought back as it was, with its groups,
// its roles and all that they were granted; and purged, it leaves nothing of them.
func TestTheLifeOfAnOverlaidDatabase(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.Made(t, database.SingleLogin)
	owner := s.Owner(t, w)
	check.Must(owner.Exec("CREATE TABLE older (n int); CREATE SCHEMA sales; CREATE TABLE sales.item (n int)"))(t)
	s.DoneInTheEnd(t, w.OptIn())
	first, second := s.Opened(t, w.Additional(1, role.Custom)), s.Opened(t, w.Additional(2, role.ReadWrite))
	revoked := s.Opened(t, w.Additional(3, role.ReadOnly))
	s.Done(t, revoked.Shut(role.Revocation, 2))
	check.Must(owner.Exec(fmt.Sprintf(agenttest.Furnishing, w.Name, first.Username, second.Username)))(t)
	check.Must(s.Direct(t, w.Name, first.Username, first.Password).Exec("CREATE TABLE of_first (n int)"))(t)
	// What the owner has taken from a group, a restore does not give back.
	check.Must(owner.Exec("CREATE TABLE hidden (n int); REVOKE ALL ON hidden FROM " + w.Names().WriteGroup))(t)
	dump, whole := s.Dumped(t, w), s.WholeOf(t, w)
	s.Verified(t, w)
	check.Must(owner.Exec(`DROP TABLE things CASCADE; DROP SCHEMA sales CASCADE;
		REVOKE ALL ON older FROM ` + w.Names().ReadGroup))(t)
	s.Restored(t, w)
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(strings.Split(dump, "\n"), strings.Split(s.Dumped(t, w), "\n")); diff != "" {
			t.Error(when, diff)
		}
		if diff := cmp.Diff(strings.Split(whole, "\n"), strings.Split(s.WholeOf(t, w), "\n")); diff != "" {
			t.Error(when, diff)
		}
		for _, l := range []agenttest.LoginOf{w.Present(database.OwnerLogin), first, second} {
			s.GetsIn(t, when, l)
		}
		s.GetsInNowhere(t, when, revoked)
		of := s.Direct(t, w.Name, second.Username, second.Password)
		check.Must(of.Exec("INSERT INTO older VALUES (1); DELETE FROM older; SELECT * FROM sales.item"))(t)
		agenttest.Refused(t, when+", what is hidden", of, "SELECT * FROM hidden")
		check.NoError(t, of.Close())
		record := w.Record()
		record.OverlayStatus = database.OverlayActive
		if found := doctor.ExamineRights(&doctor.Database{Record: record}, s.RightsIn(t, w)); len(found) > 0 {
			t.Errorf("%s, inside: %v", when, found)
		}
	}
	same("restored")

	s.Done(t, w.Configure(3, command.Configure{Timeouts: agenttest.Standard, ReadOnly: true}))
	s.Shows(t, second, "statement_timeout", "1min")
	s.Shows(t, second, "default_transaction_read_only", "on")
	s.Done(t, w.Configure(4, command.Configure{}))
	s.Done(t, w.Access(3, false, true))
	s.GetsInNowhere(t, "stopped", second)
	s.Done(t, w.Access(4, true, false))
	same("started again")
	s.NoOlderSessions(t, w)

	catalog := s.CatalogOf(t, w)
	s.Done(t, w.Isolating(agenttest.NewUUID()))
	s.IsIsolated(t, "isolated", w)
	s.GetsInNowhere(t, "isolated", first)
	s.Done(t, w.Rejoining(agenttest.NewUUID()))
	if diff := cmp.Diff(strings.Split(catalog, "\n"), strings.Split(s.CatalogOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	same("back in service")

	s.Deleted(t, w, 5)
	s.RefusedFor(t, command.ReasonIsolated, w.OptIn())
	s.Done(t, w.Purging(agenttest.NewUUID()))
	s.IsPurged(t, w)
}
