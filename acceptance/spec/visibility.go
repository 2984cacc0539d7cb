package spec

import (
	"slices"

	"github.com/pgherd/pgherd/core/id"
)

// nobodysID is the ID of nothing.
const nobodysID = "00000000-0000-4000-8000-000000000000"

var seeing = []Scenario{
	{Name: "a full-access key sees every database of its account, oldest first, and no other", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		one := ada.Creates("one")
		s.Pass(glance)
		two := ada.Creates("two")
		bob.Creates("other")
		s.That(slices.Equal(ada.SeesAll(), []id.DatabaseID{one.ID, two.ID}), "ada sees %v", ada.SeesAll())
	}},
	{Name: "a key for selected databases sees these and makes none", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, two := ada.Creates("one"), ada.Creates("two")
		ci := s.WithKey(ada.Account, two.ID)

		s.That(slices.Equal(ci.SeesAll(), []id.DatabaseID{two.ID}), "the key sees %v", ci.SeesAll())
		s.That(ci.Sees(two.ID).Name == two.Name, "it sees another database")
		s.Refused(refusal(ci.Databases.Get(ctx, one.ID)), "DATABASE_NOT_FOUND")
		s.Refused(refusal(ci.CreateDatabase(NewDatabase{Name: s.Name("three"), DisplayName: "D"})), "KEY_SCOPE_DENIED")
	}},
}
