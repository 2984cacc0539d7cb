package agent_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Everything that logins of a customer can make, with owners and privileges of several.
func TestRoundTripOfEverything(t *testing.T) {
	s, w := databaseStack(t)
	first, second := s.opened(t, w.additional(1, role.Custom)), s.opened(t, w.additional(2, role.ReadWrite))
	runtime, _ := w.login(database.RuntimeLogin)
	readOnly, _ := w.login(database.ReadonlyLogin)
	s.psql(t, s.pg.URL(w.name), string(check.Must(os.ReadFile("testdata/roundtrip/everything.sql"))(t)), "-o", os.DevNull,
		"-v", "database="+w.name, "-v", "owner="+w.name, "-v", "runtime="+runtime, "-v", "readonly="+readOnly,
		"-v", "first="+first.username, "-v", "second="+second.username)
	s.roundTrip(t, w)
}
