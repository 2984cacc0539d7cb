package spec

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var expiringRoles = []Scenario{
	{Name: "a password whose validity ends gets in no more, and can be neither shown nor rotated", Needs: []Ability{MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, 30*day))
			made := ada.Creates("orders")
			role, login := ada.AddsLogin(made, "Reports", "read_only")
			s.That(role.CredentialExpiresAt != nil && withinMinute(*role.CredentialExpiresAt, s.Clock.Now().Add(30*day)),
				"it expires at %v", role.CredentialExpiresAt)
			held := s.bothIn(login)
			s.OK(s.Clock.Advance(30*day - time.Hour))
			s.open(held...)
			s.bothIn(login)
			s.OK(s.Clock.Advance(time.Hour + time.Minute))
			s.isExpired(ada, made, role)
			s.closed(held...)
			s.bothOut(login)
			for _, kind := range []RoleKind{"reveal", "rotate"} {
				s.Refused(s.tryOne(ada, made, role, kind), "MANAGED_ROLE_CONFLICT")
			}
			s.Refused(refusal(ada.RenameRole(made.ID, role.RoleID, "Renamed")), "MANAGED_ROLE_CONFLICT")
		}},
	{Name: "a credential is over when its time has come, be the service behind or not", Alone: true, Needs: []Ability{MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			role, login := ada.AddsLogin(made, "Reports", "read_only")
			s.OK(s.Batch.Stop())
			s.OK(s.Clock.Advance(day))
			for _, kind := range []RoleKind{"reveal", "rotate"} {
				s.Refused(s.tryOne(ada, made, role, kind), "MANAGED_ROLE_CONFLICT")
			}
			s.OK(s.Batch.Start())
			s.isExpired(ada, made, role)
			s.bothOut(login)
		}},
	{Name: "a rotation begins a new validity", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetCredentialValidity(ada.Account, 30*day))
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "read_only")
		s.OK(s.Clock.Advance(29 * day))
		ada.Rotates(made, role, "rotate-1")
		fresh := ada.Reveals(made, role)
		s.That(withinMinute(*fresh.CredentialExpiresAt, s.Clock.Now().Add(30*day)), "it expires at %v", fresh.CredentialExpiresAt)
		s.OK(s.Clock.Advance(2 * day))
		s.bothIn(fresh.Login())
	}},
	{Name: "an expired role can be revoked and deleted", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
		made := ada.Creates("orders")
		revoked, deleted := ada.AddsRole(made, "one", "custom"), ada.AddsRole(made, "two", "custom")
		s.OK(s.Clock.Advance(day))
		s.isExpired(ada, made, revoked)
		s.isExpired(ada, made, deleted)
		ada.Revokes(made, revoked)
		s.That(ada.FindsRole(made, revoked).Status == "revoked", "it is %s", ada.FindsRole(made, revoked).Status)
		ada.Deletes(made, deleted)
	}},
	{Name: "a start of the database lets no expired role in", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
		made := ada.Creates("orders")
		role, login := ada.AddsLogin(made, "Reports", "custom")
		s.OK(s.Clock.Advance(day))
		s.isExpired(ada, made, role)
		ada.Sets(made.ID, "stop", "stopped")
		ada.Sets(made.ID, "start", "active")
		s.bothOut(login)
	}},
	{Name: "a rotation that comes after its own validity ends in an expired role, and keeps nothing waiting", Alone: true,
		Needs: []Ability{MovesTime}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			role, old := ada.AddsLogin(made, "Reports", "read_only")
			held := s.bothIn(old)
			s.losesAgent()
			begun := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
			s.That(begun.Status == "pending", "the change is %+v", begun)
			s.OK(s.Clock.Advance(2 * day))
			s.OK(s.Agent.Start())
			s.isExpired(ada, made, role)
			s.closed(held...)
			s.bothOut(old)
			done, err := ada.Roles.GetChange(ctx, made.ID, role.RoleID, begun.OperationID)
			s.OK(err)
			s.That(done.Status == "completed" && done.CredentialGeneration == 2, "the change is %+v", done)
			s.Refused(s.tryOne(ada, made, role, "reveal"), "MANAGED_ROLE_CONFLICT")
			var other wire.Role
			s.Eventually("the database takes another role", func() bool {
				other, err = ada.CreateRole(made.ID, NewRole{
					DisplayName: "Jobs", AccessProfile: "custom", ConnectionLimit: 2, IdempotencyKey: "jobs",
				})
				return err == nil
			})
			s.bothIn(ada.Reveals(made, other).Login())
			ada.Deletes(made, role)
		}},
	{Name: "a role that is not ready when its validity ends is refused, and deleted", Alone: true, Needs: []Ability{MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			ask := NewRole{DisplayName: "Reports", AccessProfile: "read_only", ConnectionLimit: 2, IdempotencyKey: "deploy-1"}
			s.losesAgent()
			s.Refused(refusal(ada.CreateRole(made.ID, ask)), "AGENT_ERROR")
			half := ada.halfMade(made)
			s.OK(s.Agent.Start())
			s.OK(s.Clock.Advance(day))
			s.Refused(refusal(ada.CreateRole(made.ID, ask)), "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.Roles.Prepare(ctx, made.ID, half.RoleID)), "MANAGED_ROLE_CONFLICT")
			ada.Deletes(made, half)
			again := ask
			again.IdempotencyKey = "deploy-2"
			s.bothIn(ada.Reveals(made, ada.AddsRoleAs(made, again)).Login())
		}},
	{Name: "without a validity no password ever ends", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "custom")
		s.That(role.CredentialExpiresAt == nil, "it expires at %v", role.CredentialExpiresAt)
		s.OK(s.Clock.Advance(1000 * day))
		s.bothIn(login)
		s.That(ada.FindsRole(made, role).Status == "ready", "it is %s", ada.FindsRole(made, role).Status)
	}},
}

func withinMinute(t, of time.Time) bool { return t.Sub(of).Abs() <= time.Minute }

// isExpired waits until the service has shut an expired role out.
func (s *Stage) isExpired(c *Customer, db Created, r wire.Role) {
	s.Helper()
	s.Eventually("the role is expired and nothing is pending", func() bool {
		list := must(c.Roles.List(ctx, db.ID))(s)
		return slices.ContainsFunc(list, func(o wire.ListedRole) bool {
			return o.RoleID == r.RoleID && o.Status == "expired" && o.OperationID == nil
		})
	})
}

// tryOne reveals or changes a role.
func (s *Stage) tryOne(c *Customer, db Created, r wire.Role, what RoleKind) (err error) {
	if what == "reveal" {
		_, err = c.Roles.Reveal(ctx, db.ID, r.RoleID)
		return err
	}
	_, err = c.ChangeRole(db.ID, r.RoleID, what, "try "+string(what)+" "+string(r.RoleID))
	return err
}
