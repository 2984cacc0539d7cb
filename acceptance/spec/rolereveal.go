package spec

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
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
	{Name: "nothing but the credentials tells a password", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		old := ada.Reveals(made, role).Password
		change := ada.Rotates(made, role, "rotate-1")
		secrets := []string{old, ada.Reveals(made, role).Password}
		for _, path := range []string{
			"", "/activity", "/custom-roles", "/custom-roles?includeRevoked=true", "/managed-roles",
			"/custom-roles/" + string(role.RoleID) + "/changes/" + string(change.OperationID),
		} {
			answer := s.sends(Request{Method: "GET", Path: made.path(path), Key: ada.Key.Text})
			s.That(answer.Status == 200, "%s: %d %s", path, answer.Status, answer.Body)
			for _, secret := range secrets {
				s.That(!strings.Contains(string(answer.Body), secret), "%q tells a password", path)
			}
		}
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
	{Name: "a role that is gone from the server is neither shown nor rotated, and can be deleted", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		s.OK(s.OnServer.DropLogin(made, role.Username))
		before := len(ada.ReadsActivity(made.ID))
		s.says(s.Refused(refusal(ada.Roles.Reveal(ctx, made.ID, role.RoleID)), "MANAGED_ROLE_CONFLICT"), "server has no", "login")
		s.That(len(ada.ReadsActivity(made.ID)) == before, "it stands in the log all the same")
		_, err := ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1")
		s.says(s.Refused(err, "MANAGED_ROLE_CONFLICT"), "server has no", "login")
		ada.AddsRole(made, "Next", "custom")
		ada.Deletes(made, role)
	}},
	{Name: "a removed role is as if it had never been, but to its removal", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		ada.Deletes(made, role)
		for what, err := range s.tryReady(ada, made, role) {
			s.Log(what)
			s.Refused(err, "ROLE_NOT_FOUND")
		}
		ada.Deletes(made, role)
		again := must(ada.Roles.Remove(ctx, made.ID, role.RoleID))(s)
		s.That(again.Status == "removed", "it is %+v", again)
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

// tryRole does everything that there is to do with one role.
func (s *Stage) tryRole(c *Customer, db Created, r id.RoleID) map[string]error {
	errs := s.tryReady(c, db, wire.Role{RoleID: r})
	_, errs["prepare"] = c.Roles.Prepare(ctx, db.ID, r)
	_, errs["admit"] = c.Roles.Admit(ctx, db.ID, r)
	_, errs["rename"] = c.RenameRole(db.ID, r, "Renamed")
	_, errs["delete"] = c.DeleteRole(db.ID, r)
	_, errs["remove"] = c.Roles.Remove(ctx, db.ID, r)
	return errs
}
