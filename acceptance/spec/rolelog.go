package spec

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/audit"
)

var recordingRoles = []Scenario{
	{Name: "the activity log tells who did what with a role and with a login, and no secret", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		secrets := []string{made.Password, ada.Key.Text, ada.Reveals(made, role).Password}
		must(ada.RenameRole(made.ID, role.RoleID, "Monthly"))(s)
		ada.Rotates(made, role, "rotate-1")
		secrets = append(secrets, ada.Reveals(made, role).Password)
		ada.Revokes(made, role)
		ada.Deletes(made, role)
		secrets = append(secrets, ada.RevealsLogin(made, "runtime").Password, ada.RotatesLogin(made, "owner", "owner-1").Password)

		log := ada.ReadsActivity(made.ID)
		var actions []audit.Action
		for _, e := range log {
			actions = append(actions, e.Action)
			s.That(ada.did(e), "%s was done by %s, %+v", e.Action, e.Actor, e.Person)
			if e.Action != "database.created" {
				s.That(e.Details["roleId"] == string(role.RoleID) || e.Details["login"] != "", "%s was done with %v", e.Action, e.Details)
			}
		}
		s.inOrder(log, actions, []audit.Action{
			"database.created", "role.created", "role.revealed", "role.renamed", "role.rotated", "role.revealed", "role.revoked",
			"role.removed", "login.revealed", "login.rotated", "login.revealed",
		})
		s.noSecretIn(log, secrets...)
	}},
	{Name: "what was proven of a rotation stands in the log", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.bothIn(login)
		ada.Rotates(made, role, "rotate-1")
		log := ada.ReadsActivity(made.ID)
		i := slices.IndexFunc(log, func(e wire.Activity) bool { return e.Action == "role.rotated" })
		s.That(i >= 0, "the log is %+v", log)
		for _, proven := range []string{"noneLeft", "oldRefused", "newAccepted"} {
			s.That(log[i].Details[proven] == "true", "%s: the entry is %+v", proven, log[i])
		}
		s.That(log[i].Details["credentialGeneration"] == "2", "the entry is %+v", log[i])
	}},
	{Name: "an expiry is the service's own doing", Both: true, Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetCredentialValidity(ada.Account, time.Hour))
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "read_only")
		s.OK(s.Clock.Advance(time.Hour))
		entry := s.isExpired(ada, made, role)
		s.That(entry.Actor == "system" && entry.Person == nil, "the entry is %+v", entry)
	}},
}
