package spec

import (
	"maps"
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
)

var sharingRoles = []Scenario{
	{Name: "an admin manages the roles of somebody else's database, a developer and a viewer only see them", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		change := ada.Rotates(made, role, "rotate-1")
		for _, standing := range []account.Standing{"viewer", "developer"} {
			bob := s.member(made, standing)
			for what, err := range s.manages(bob, made, role, change) {
				s.Logf("a %s tries to %s", standing, what)
				s.Refused(err, "FORBIDDEN")
			}
			s.That(len(bob.ListsRoles(made)) == 1, "a %s sees %+v", standing, bob.ListsRoles(made))
			must(bob.Logins.List(ctx, made.ID))(s)
		}
		s.That(ada.FindsRole(made, role) == ada.ListsRoles(made)[0] && ada.FindsRole(made, role).CredentialGeneration == 2,
			"somebody changed it to %+v", ada.FindsRole(made, role))
		bob := s.member(made, "admin")
		own, login := bob.AddsLogin(made, "Bob's", "read_only")
		s.bothIn(login)
		bob.Rotates(made, own, "rotate-2")
		bob.Deletes(made, own)
	}},
	{Name: "a key for selected databases manages the roles of these, and of no other", Play: func(s *Stage) {
		ada := s.Customer("pro")
		inside, outside := ada.Creates("inside"), ada.Creates("outside")
		role := ada.AddsRole(outside, "Reports", "custom")
		change := ada.Rotates(outside, role, "rotate-1")
		selected := s.WithKey(ada.Account, inside.ID)
		own, login := selected.AddsLogin(inside, "Own", "read_write")
		s.bothIn(login)
		selected.Deletes(inside, own)
		for what, err := range s.manages(selected, outside, role, change) {
			s.Log(what)
			s.Refused(err, "DATABASE_NOT_FOUND")
		}
		for _, mallory := range []*Customer{s.Customer("pro"), selected} {
			s.Refused(refusal(mallory.Roles.ListAll(ctx, outside.ID)), "DATABASE_NOT_FOUND")
			s.Refused(refusal(mallory.Logins.List(ctx, outside.ID)), "DATABASE_NOT_FOUND")
		}
	}},
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
			_, errs["list"] = ada.Roles.List(ctx, made.ID)
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

// member is somebody with a standing on a database of another account, and a key for it.
func (s *Stage) member(db Created, standing account.Standing) *Customer {
	s.Helper()
	bob := s.Customer("pro")
	s.OK(s.Operator.MakeMember(db.ID, bob.Account.UserID, standing))
	return s.WithKey(bob.Account, db.ID)
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
