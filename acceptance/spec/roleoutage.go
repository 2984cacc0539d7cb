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
	{Name: "a restart of the metadata database loses no rotation and applies none twice", Alone: true, Needs: []Ability{HasOutages},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, old := ada.AddsLogin(made, "Reports", "read_only")
			answered := make(chan error, 1)
			go func() {
				_, err := ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1")
				answered <- err
			}()
			s.loses(s.Outages.Metadata)
			s.OK(s.Outages.Metadata(false))
			s.Logf("the request was answered with %v", <-answered)
			s.Eventually("the same request is answered, and done", func() bool {
				done, err := ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1")
				return err == nil && done.Status == "completed"
			})
			s.bothOut(old)
			fresh := ada.Reveals(made, role)
			s.That(fresh.CredentialGeneration == 2, "it is %+v", fresh.Role)
			s.bothIn(fresh.Login())
		}},
}
