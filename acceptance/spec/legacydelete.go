package spec

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var deletingLegacyRoles = overSingleLogins([]Scenario{
	{Name: "a role is removed however far it is: reserved, prepared, granted, ready or revoked", Play: func(s *Stage) {
		ada, made := s.Owner()
		for i, upTo := range []func(wire.Role){
			func(wire.Role) {},
			func(r wire.Role) { ada.Prepares(made, r) },
			func(r wire.Role) { s.OK(s.OnServer.Owner(made, ada.Prepares(made, r).GrantSQL)) },
		} {
			role := must(ada.CreateRole(made.ID, asksRole(nth("role", i), 1)))(s)
			upTo(role)
			ada.Deletes(made, role)
			s.gone(role)
			s.Refused(refusal(ada.CreateRole(made.ID, asksRole(nth("role", i), 1))), "LEGACY_ROLE_CONFLICT") // the key's role is removed
		}
		ready, login := ada.AddsLogin(made, "ready", "read_write")
		revoked := ada.AddsRole(made, "revoked", "custom")
		sessions := s.bothIn(login)
		ada.Deletes(made, ready)
		s.closed(sessions...)
		s.bothOut(login)
		ada.Revokes(made, revoked)
		ada.Deletes(made, revoked)
		for _, r := range []wire.Role{ready, revoked} {
			s.gone(r)
			ada.Deletes(made, r)
			s.refusesAll(s.tryReady(ada, made, r), "ROLE_NOT_FOUND")
			s.Refused(refusal(ada.LegacyRoles.Reconcile(ctx, made.ID, r.RoleID)), "ROLE_NOT_FOUND")
		}
		s.That(len(ada.ListsRoles(made)) == 0, "the list is %+v", ada.ListsRoles(made))
	}},
	{Name: "a grant of the owner keeps a role, revoked, until it is taken back, and the refusal has no list", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.OnServer.Entangle(made, role.Username, 2))
		sessions := s.bothIn(login)
		for range 2 {
			r := s.Refused(refusal(ada.Roles.Remove(ctx, made.ID, role.RoleID)), "ROLE_DEPENDENCIES")
			s.That(r.Dependencies == nil, "it tells %+v", r.Dependencies)
			s.That(ada.FindsRole(made, role).Status == "revoked", "it is %s", ada.FindsRole(made, role).Status)
		}
		s.closed(sessions...)
		s.bothOut(login)
		s.OK(s.OnServer.Disentangle(made, role.Username))
		ada.Deletes(made, role)
		s.gone(role)
	}},
})

// gone fails the story where the server has a role.
func (s *Stage) gone(r wire.Role) {
	s.Helper()
	s.That(!slices.ContainsFunc(s.serverObjects(), func(o string) bool { return strings.HasSuffix(o, r.Username) }),
		"the server still has %s", r.Username)
}
