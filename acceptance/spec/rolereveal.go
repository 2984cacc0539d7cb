package spec

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var revealingRoles = []Scenario{
	{Name: "a password is told with all that a log-in needs, and the log says who asked", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		before := len(ada.ReadsActivity(made.ID))
		shown := ada.Reveals(made, role)
		s.That(shown.Host == made.Host && shown.Port == made.Port && shown.Database == made.Name && shown.TLSRequired &&
			len(shown.Password) >= 32 && shown.RoleID == role.RoleID && shown.Username == role.Username, "%+v", shown.Role)
		s.That(ada.Reveals(made, role) == shown, "a second look shows something else")

		log := ada.ReadsActivity(made.ID)
		s.That(len(log) == before+2, "two looks left %d entries", len(log)-before)
		s.That(s.looks(ada, log, "roleId", string(role.RoleID)) == 2, "the log is %+v", log)
		s.noSecretIn(log, shown.Password)
	}},
	{Name: "a password that was changed past the service is not shown; a rotation repairs that", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		own := login
		own.Password = strings.Repeat("own", 12)
		s.OK(s.OnServer.SetPassword(login, own.Password))
		before := len(ada.ReadsActivity(made.ID))
		_, err := ada.Roles.Reveal(ctx, made.ID, role.RoleID)
		s.says(s.Refused(err, "MANAGED_ROLE_CONFLICT"), "changed on the server", "rotation repairs")
		s.That(len(ada.ReadsActivity(made.ID)) == before, "it stands in the log all the same")
		ada.Rotates(made, role, "repair-1")
		s.bothOut(login)
		s.bothOut(own)
		s.bothIn(ada.Reveals(made, role).Login())
	}},
}

// says fails the story unless a refusal's message has all of these words.
func (s *Stage) says(r *apiclient.Error, words ...string) {
	s.Helper()
	for _, w := range words {
		s.That(strings.Contains(r.Message, w), "%q does not say %q", r.Message, w)
	}
}

// looks counts a customer's looks at the password of a role or a login.
func (s *Stage) looks(c *Customer, log []wire.Activity, of, name string) (n int) {
	for _, e := range log {
		if strings.HasSuffix(string(e.Action), ".revealed") && c.did(e) && e.Details[of] == name {
			n++
		}
	}
	return n
}
