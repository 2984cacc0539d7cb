package spec

import (
	"slices"
	"time"
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
			for _, kind := range []string{"reveal", "rotate"} {
				s.Refused(s.tryOne(ada, made, role, kind), "MANAGED_ROLE_CONFLICT")
			}
			_, err := ada.RenameRole(made.ID, role.RoleID, "Renamed")
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
		}},
	{Name: "a credential is over when its time has come, be the service behind or not", Alone: true, Needs: []Ability{MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			role, login := ada.AddsLogin(made, "Reports", "read_only")
			s.OK(s.Batch.Stop())
			s.OK(s.Clock.Advance(day))
			for _, kind := range []string{"reveal", "rotate"} {
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
	{Name: "without a validity no password ever ends", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role, login := ada.AddsLogin(made, "Reports", "custom")
		s.That(role.CredentialExpiresAt == nil, "it expires at %v", role.CredentialExpiresAt)
		s.OK(s.Clock.Advance(1000 * day))
		s.bothIn(login)
		s.That(ada.FindsRole(made, role).Status == "ready", "it is %s", ada.FindsRole(made, role).Status)
	}},
}

func withinMinute(t, of time.Time) bool { return t.Sub(of).Abs() <= time.Minute }

// isExpired waits until the service has shut an expired role out.
func (s *Stage) isExpired(c *Customer, db Created, r Role) {
	s.Helper()
	s.Eventually("the role is expired and nothing is pending", func() bool {
		list, err := c.Roles(db.ID, false)
		s.OK(err)
		return slices.ContainsFunc(list, func(o Role) bool {
			return o.RoleID == r.RoleID && o.Status == "expired" && o.OperationID == nil
		})
	})
}

// tryOne reveals or changes a role.
func (s *Stage) tryOne(c *Customer, db Created, r Role, what string) (err error) {
	if what == "reveal" {
		_, err = c.RevealRole(db.ID, r.RoleID)
		return err
	}
	_, err = c.ChangeRole(db.ID, r.RoleID, what, "try "+what+" "+r.RoleID)
	return err
}
