package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	s := realStack(t)
	w := s.made(t, database.SingleLogin)
	owner := s.owner(t, w)
	check.Must(owner.Exec("CREATE TABLE older (n int); CREATE SCHEMA sales; CREATE TABLE sales.item (n int)"))(t)
	s.doneInTheEnd(t, w.optIn())
	first, second := s.opened(t, w.additional(1, role.Custom)), s.opened(t, w.additional(2, role.ReadWrite))
	revoked := s.opened(t, w.additional(3, role.ReadOnly))
	s.done(t, revoked.shut(role.Revocation, 2))
	check.Must(owner.Exec(fmt.Sprintf(furnishing, w.name, first.username, second.username)))(t)
	check.Must(s.direct(t, w.name, first.username, first.password).Exec("CREATE TABLE of_first (n int)"))(t)
	// What the owner has taken from a group, a restore does not give back.
	check.Must(owner.Exec("CREATE TABLE hidden (n int); REVOKE ALL ON hidden FROM " + w.names().WriteGroup))(t)
	dump, whole := s.dumped(t, w), s.wholeOf(t, w)
	s.verified(t, w)
	check.Must(owner.Exec(`DROP TABLE things CASCADE; DROP SCHEMA sales CASCADE;
		REVOKE ALL ON older FROM ` + w.names().ReadGroup))(t)
	s.restored(t, w)
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(strings.Split(dump, "\n"), strings.Split(s.dumped(t, w), "\n")); diff != "" {
			t.Error(when, diff)
		}
		if diff := cmp.Diff(strings.Split(whole, "\n"), strings.Split(s.wholeOf(t, w), "\n")); diff != "" {
			t.Error(when, diff)
		}
		for _, l := range []loginOf{w.present(database.OwnerLogin), first, second} {
			s.getsIn(t, when, l)
		}
		s.getsInNowhere(t, when, revoked)
		of := s.direct(t, w.name, second.username, second.password)
		check.Must(of.Exec("INSERT INTO older VALUES (1); DELETE FROM older; SELECT * FROM sales.item"))(t)
		refused(t, when+", what is hidden", of, "SELECT * FROM hidden")
		check.NoError(t, of.Close())
		record := w.record()
		record.OverlayStatus = database.OverlayActive
		if found := doctor.ExamineRights(&doctor.Database{Record: record}, s.rightsIn(t, w)); len(found) > 0 {
			t.Errorf("%s, inside: %v", when, found)
		}
	}
	same("restored")

	s.done(t, w.configure(3, command.Configure{Timeouts: standard, ReadOnly: true}))
	s.shows(t, second, "statement_timeout", "1min")
	s.shows(t, second, "default_transaction_read_only", "on")
	s.done(t, w.configure(4, command.Configure{}))
	s.done(t, w.access(3, false, true))
	s.getsInNowhere(t, "stopped", second)
	s.done(t, w.access(4, true, false))
	same("started again")
	s.noOlderSessions(t, w)

	catalog := s.catalogOf(t, w)
	s.done(t, w.isolating(newUUID()))
	s.isIsolated(t, "isolated", w)
	s.getsInNowhere(t, "isolated", first)
	s.done(t, w.rejoining(newUUID()))
	if diff := cmp.Diff(strings.Split(catalog, "\n"), strings.Split(s.catalogOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	same("back in service")

	s.deleted(t, w, 5)
	s.refusedFor(t, command.ReasonNotFound, w.optIn())
	s.done(t, w.purging(newUUID()))
	s.isPurged(t, w)
}

// A clone knows nothing of the source's overlay, and lacks nothing for it: not a note is made. It may have its own.
func TestTheCloneOfAnOverlaidDatabase(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	source := s.made(t, database.SingleLogin)
	check.Must(s.owner(t, source).Exec("CREATE TABLE older (n int); INSERT INTO older VALUES (1); CREATE SCHEMA sales"))(t)
	s.done(t, source.optIn())
	l := s.opened(t, source.additional(1, role.ReadWrite))
	check.Must(s.owner(t, source).Exec(fmt.Sprintf(`CREATE TABLE sales.later (n serial);
		GRANT SELECT (n), REFERENCES ON older TO %[1]s WITH GRANT OPTION;
		ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO %[1]s; SELECT lo_from_bytea(4711, 'l');
		GRANT SELECT ON LARGE OBJECT 4711 TO %[1]s`, l.username)))(t)
	c := s.cloningOf(source)
	if notes := c.loaded(t); len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	c.switched(t)
	if dump := s.dumped(t, c.clone); strings.Contains(dump, "pgh_") {
		t.Errorf("the clone has something of its source's roles: %s", dump)
	}
	s.getsIn(t, "the clone", c.clone.present(database.OwnerLogin))
	s.done(t, c.clone.optIn())
	its := s.opened(t, c.clone.additional(1, role.ReadOnly))
	check.Must(s.direct(t, c.clone.name, its.username, its.password).Exec("SELECT * FROM older; SELECT * FROM sales.later"))(t)
	s.getsIn(t, "the source", l)
}
