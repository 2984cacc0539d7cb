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
	{Name: "the roles of a database share half of its connections, revoked ones too", Play: func(s *Stage) {
		ada := s.Customer("pro") // whose databases have 60 connections
		made := ada.Creates("orders")
		ask := func(key string, limit int) NewRole {
			return NewRole{DisplayName: key, AccessProfile: "custom", ConnectionLimit: limit, IdempotencyKey: key}
		}
		s.Refused(refusal(ada.CreateRole(made.ID, ask("all", 31))), "VALIDATION_ERROR", "connectionLimit")
		most := ada.AddsRoleAs(made, ask("most", 29))
		s.Refused(refusal(ada.CreateRole(made.ID, ask("two", 2))), "VALIDATION_ERROR", "connectionLimit")
		ada.AddsRoleAs(made, ask("one", 1))
		ada.Revokes(made, most)
		s.Refused(refusal(ada.CreateRole(made.ID, ask("two", 2))), "VALIDATION_ERROR", "connectionLimit")
		ada.Deletes(made, most)
		ada.AddsRoleAs(made, ask("two", 2))
		ada.AddsRoleAs(made, ask("rest", 27))
	}},
	{Name: "a role has as many connections of its own as it was given", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
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
