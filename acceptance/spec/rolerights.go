package spec

import (
	"maps"
	"slices"
)

var sharingRoles = []Scenario{
	{Name: "an admin manages the roles of somebody else's database, a developer and a viewer only see them", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "custom")
		change := ada.Rotates(made, role, "rotate-1")
		for _, standing := range []string{"viewer", "developer"} {
			bob := s.member(made, standing)
			for what, err := range s.manages(bob, made, role, change) {
				s.Logf("a %s tries to %s", standing, what)
				s.Refused(err, "FORBIDDEN")
			}
			s.That(len(bob.ListsRoles(made)) == 1, "a %s sees %+v", standing, bob.ListsRoles(made))
			_, err := bob.ManagedLogins(made.ID)
			s.OK(err)
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
			_, err := mallory.Roles(outside.ID, true)
			s.Refused(err, "DATABASE_NOT_FOUND")
			_, err = mallory.ManagedLogins(outside.ID)
			s.Refused(err, "DATABASE_NOT_FOUND")
		}
	}},
	{Name: "with the feature off nobody manages additional roles; those that exist work on, and so do managed logins", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			role := ada.AddsRole(made, "Reports", "custom")
			change := ada.Rotates(made, role, "rotate-1")
			login := ada.Reveals(made, role).Login()
			s.OK(s.Operator.SetFeature("additional-roles", false))
			s.Cleanup(func() {
				if err := s.Operator.SetFeature("additional-roles", true); err != nil {
					s.Error(err)
				}
			})
			errs := s.manages(ada, made, role, change)
			maps.DeleteFunc(errs, func(what string, _ error) bool { return slices.Contains(ofLogins, what) })
			_, errs["list"] = ada.Roles(made.ID, false)
			for what, err := range errs {
				s.Log(what)
				s.Refused(err, "FEATURE_DISABLED")
			}
			s.bothIn(login)
			_, err := ada.RevealLogin(made.ID, "runtime")
			s.OK(err)
			s.OK(s.Operator.SetFeature("additional-roles", true))
			s.That(ada.FindsRole(made, role).Status == "ready", "it is %+v", ada.FindsRole(made, role))
		}},
	{Name: "in a maintenance window roles are not managed, and get in all the same", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			role := ada.AddsRole(made, "Reports", "custom")
			change := ada.Rotates(made, role, "rotate-1")
			login := ada.Reveals(made, role).Login()
			s.OK(s.Operator.SetMaintenance(true))
			s.Cleanup(func() {
				if err := s.Operator.SetMaintenance(false); err != nil {
					s.Error(err)
				}
			})
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
func (s *Stage) member(db Created, standing string) *Customer {
	s.Helper()
	bob := s.Customer("pro")
	s.OK(s.Operator.MakeMember(db.ID, bob.Account, standing))
	return s.WithKey(bob.Account, db.ID)
}

// ofLogins is what manages does with managed logins.
var ofLogins = []string{"reveal a login", "rotate a login"}

// manages does everything that needs the right to configure a database.
func (s *Stage) manages(c *Customer, db Created, r Role, change RoleChange) map[string]error {
	errs := s.tryRole(c, db, r.RoleID)
	ask := NewRole{DisplayName: "X", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "x"}
	_, errs["create"] = c.CreateRole(db.ID, ask)
	_, errs["read a change"] = c.API.RoleChange(db.ID, r.RoleID, change.OperationID)
	_, errs["replay a change"] = c.ReplayChange(db.ID, r.RoleID, change.OperationID)
	_, errs[ofLogins[0]] = c.RevealLogin(db.ID, "runtime")
	_, errs[ofLogins[1]] = c.RotateLogin(db.ID, "owner", "try-owner")
	return errs
}
