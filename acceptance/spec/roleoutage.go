package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var losingPartsOfRoles = []Scenario{
	{Name: "without PgBouncer or PostgreSQL a rotation is pending, a setup is refused, and both go on when it is back", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			for part, lose := range map[string]func(bool) error{"PgBouncer": s.Outages.Pooler, "PostgreSQL": s.Outages.Server} {
				s.Log(part)
				ada, made := s.Owner()
				role, old := ada.AddsLogin(made, "Reports", "read_only")
				half := ada.Creates("half")
				s.loses(lose)
				begun := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
				s.That(begun.Status == "pending", "the change is %+v", begun)
				ask := NewRole{DisplayName: "Later", AccessProfile: "custom", ConnectionLimit: 2, IdempotencyKey: "later"}
				s.Refused(refusal(ada.CreateRole(half.ID, ask)), "AGENT_ERROR")

				s.OK(lose(false))
				s.completes(ada, made, role, begun)
				s.bothOut(old)
				s.bothIn(ada.Reveals(made, role).Login())
				var later wire.Role
				s.Eventually("the setup goes on", func() (ready bool) {
					var err error
					later, err = ada.CreateRole(half.ID, ask)
					return err == nil
				})
				s.bothIn(ada.Reveals(half, later).Login())
			}
		}},
}
