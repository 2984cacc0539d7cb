package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var limitingRoles = []Scenario{
	{Name: "a database has at most ten roles, revoked ones counted; a removal frees the slot", Play: func(s *Stage) {
		ada, made := s.Owner()
		var roles []wire.Role
		for n := range 10 {
			roles = append(roles, ada.AddsRole(made, nth("role", n), "custom"))
		}
		ada.Revokes(made, roles[0])
		eleventh := NewRole{DisplayName: "one more", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "more"}
		s.Refused(refusal(ada.CreateRole(made.ID, eleventh)), "MANAGED_ROLE_CONFLICT")
		ada.Deletes(made, roles[0])
		more := ada.AddsRoleAs(made, eleventh)
		s.That(more.Ordinal == 11 && more.Username == usernameOf(made, 11), "it is %+v", more)
		s.Connects(ada.Reveals(made, more).Login())
	}},
	{Name: "a role has as many connections as it was given", Both: true, Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRoleAs(made, NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 3, IdempotencyKey: "k"})
		login := ada.Reveals(made, role).Login()
		for range 3 {
			s.Connects(login)
		}
		rows := must(s.SQL.Run(made.Login(), "SELECT count(*) FROM pg_stat_activity WHERE usename = "+literal(role.Username)))(s)
		s.That(rows[0] == "3", "it has %v", rows)
		s.Connects(made.Login())
	}},
}
