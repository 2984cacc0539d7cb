package spec

import (
	"maps"
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var switchingRolesOff = []Scenario{
	{Name: "with the feature off nobody manages additional roles; those that exist work on, and so do managed logins", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role := ada.AddsRole(made, "Reports", "custom")
			change := ada.Rotates(made, role, "rotate-1")
			login := ada.Reveals(made, role).Login()
			s.OK(s.Operator.SetFeature("additional-roles", false))
			s.finally(func() error { return s.Operator.SetFeature("additional-roles", true) })
			errs := s.manages(ada, made, role, change)
			maps.DeleteFunc(errs, func(what string, _ error) bool { return slices.Contains(ofLogins, what) })
			_, errs["list"] = ada.Roles.List(ctx, made.ID, false)
			for what, err := range errs {
				s.Log(what)
				s.Refused(err, "FEATURE_DISABLED")
			}
			s.bothIn(login)
			must(ada.Logins.Reveal(ctx, made.ID, "runtime"))(s)
			s.OK(s.Operator.SetFeature("additional-roles", true))
			s.That(ada.FindsRole(made, role).Status == "ready", "it is %+v", ada.FindsRole(made, role))
		}},
	{Name: "in a maintenance window roles are not managed, and get in all the same", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role := ada.AddsRole(made, "Reports", "custom")
			change := ada.Rotates(made, role, "rotate-1")
			login := ada.Reveals(made, role).Login()
			s.OK(s.Operator.SetMaintenance(true))
			s.finally(func() error { return s.Operator.SetMaintenance(false) })
			errs := s.manages(ada, made, role, change)
			s.bothIn(login)
			s.OK(s.Operator.SetMaintenance(false))
			for what, err := range errs {
				s.Log(what)
				s.Refused(err, "MAINTENANCE")
			}
			s.That(ada.FindsRole(made, role).Status == "ready", "it is %+v", ada.FindsRole(made, role))
		}},
}

// ofLogins is what manages does with managed logins.
var ofLogins = []string{"reveal a login", "rotate a login"}

// manages does everything that needs the right to configure a database.
func (s *Stage) manages(c *Customer, db Created, r wire.Role, change wire.RoleChange) map[string]error {
	errs := s.tryRole(c, db, r.RoleID)
	ask := NewRole{DisplayName: "X", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "x"}
	_, errs["create"] = c.CreateRole(db.ID, ask)
	_, errs["read a change"] = c.Roles.GetChange(ctx, db.ID, r.RoleID, change.OperationID)
	_, errs["replay a change"] = c.ReplayChange(db.ID, r.RoleID, change.OperationID)
	_, errs[ofLogins[0]] = c.Logins.Reveal(ctx, db.ID, "runtime")
	_, errs[ofLogins[1]] = c.RotateLogin(db.ID, "owner", "try-owner")
	return errs
}
