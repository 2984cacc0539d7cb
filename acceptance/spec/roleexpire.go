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
			sessions := s.bothIn(login)
			s.OK(s.Clock.Advance(30*day - time.Hour))
			s.open(sessions...)
			s.bothIn(login)
			s.OK(s.Clock.Advance(time.Hour + time.Minute))
			s.isExpired(ada, made, role)
			s.closed(sessions...)
			s.bothOut(login)
			for _, kind := range []RoleKind{"reveal", "rotate"} {
				s.Refused(s.tryOne(ada, made, role, kind), "MANAGED_ROLE_CONFLICT")
			}
			s.Refused(refusal(ada.RenameRole(made.ID, role.RoleID, "Renamed")), "MANAGED_ROLE_CONFLICT")
		}},
	{Name: "a credential is over when its time has come, and no later", Both: true, Alone: true, Needs: []Ability{MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			role, login := ada.AddsLogin(made, "Reports", "read_only")
			s.stopsBatch()
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
}

func withinMinute(t, of time.Time) bool { return t.Sub(of).Abs() <= time.Minute }

// isExpired waits until the expiry is over, and returns its entry in the log. The status alone does not say that: it is
// expired from when the time has come, before the agent has shut the role out.
func (s *Stage) isExpired(c *Customer, db Created, r wire.Role) (entry wire.Activity) {
	s.Helper()
	s.Eventually("the expiry is in the log", func() bool {
		log := c.ReadsActivity(db.ID)
		i := slices.IndexFunc(log, func(e wire.Activity) bool {
			return e.Action == "role.expired" && e.Details["roleId"] == string(r.RoleID)
		})
		if i >= 0 {
			entry = log[i]
		}
		return i >= 0
	})
	list := must(c.Roles.List(ctx, db.ID, false))(s)
	s.That(slices.ContainsFunc(list, func(o wire.ListedRole) bool {
		return o.RoleID == r.RoleID && o.Status == "expired" && o.OperationID == nil
	}), "the roles are %+v", list)
	return entry
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
