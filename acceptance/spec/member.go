package spec

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

var sharing = []Scenario{
	{Name: "a member finds the database with a key for it, and never with one for the own account", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := s.Customer("pro")
		home := bob.Creates("home")
		ada.Admits(bob, made, "admin")
		s.Refused(refusal(bob.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
		s.That(slices.Equal(bob.SeesAll(), []id.DatabaseID{home.ID}), "bob sees %v", bob.SeesAll())
		s.That(slices.Equal(ada.SeesAll(), []id.DatabaseID{made.ID}), "ada sees %v", ada.SeesAll())

		there := s.WithKey(bob.Account, made.ID)
		s.That(slices.Equal(there.SeesAll(), []id.DatabaseID{made.ID}), "with a key for it he sees %v", there.SeesAll())
		both := s.WithKey(bob.Account, made.ID, home.ID)
		s.That(len(both.SeesAll()) == 2, "with a key for both he sees %v", both.SeesAll())
	}},
	{Name: "a membership takes nothing from the member's own account and adds nothing to it", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := s.Customer("pro")
		s.OK(s.Operator.SetQuota(bob.Account, 1))
		ada.Admits(bob, made, "admin")
		bob.Creates("home")
		s.Refused(refusal(bob.CreateWebhook(quietURL, made.ID)), "INVALID_WEBHOOK_ENDPOINT", "databaseId")
		s.Refused(refusal(s.WithKey(bob.Account, made.ID).CreateWebhook(quietURL, made.ID)), "KEY_SCOPE_DENIED")
	}},
	{Name: "what a member does is told to the endpoints of the database's account, and never to the member's own",
		Needs: []Ability{HasReceivers}, Play: func(s *Stage) {
			ada, made := s.Owner()
			bob := s.Customer("pro")
			ada.Admits(bob, made, "developer")
			hers, his := ada.Hooks(s.receiver(), ""), bob.Hooks(s.receiver(), "")
			there := s.WithKey(bob.Account, made.ID)
			there.FinishesBackup(made.ID)
			s.Hears(hers, 1)
			must(bob.Webhooks.Test(ctx, his.ID))(s)
			s.Hears(his, 1) // the test alone
		}},
	{Name: "a key is for databases of its account and for those that its user is a member of, and for no other",
		Play: func(s *Stage) {
			_, made := s.Owner()
			eve := s.Customer("pro")
			own := eve.Creates("own")
			for _, databases := range [][]id.DatabaseID{{made.ID}, {own.ID, made.ID}, {nobodysID}} {
				_, err := s.Operator.NewKey(eve.Account, databases...)
				s.That(err != nil && strings.Contains(err.Error(), "database: "), "a key for %v: %v", databases, err)
			}
		}},
}

// Admits makes somebody who has an account a member of a database.
func (c *Customer) Admits(bob *Customer, to Created, role account.Standing) id.MembershipID {
	c.stage.Helper()
	joined := must(c.Members.Add(ctx, to.ID, wire.AddMember{Email: bob.Account.Email, Role: role}))(c.stage)
	c.stage.That(joined.Kind == wire.KindMember && joined.UserID == bob.Account.UserID, "%+v", joined)
	return id.MembershipID(joined.ID)
}

// member is somebody who is a member of a customer's database, with a key for it.
func (c *Customer) member(of Created, role account.Standing) *Customer {
	c.stage.Helper()
	bob := c.stage.Customer("pro")
	c.Admits(bob, of, role)
	return c.stage.WithKey(bob.Account, of.ID)
}
