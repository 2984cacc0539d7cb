package spec

import "github.com/pgherd/pgherd/adapters/apiclient"

var changingKeys = []Scenario{
	{Name: "a revoked key stops working at once, the other keys do not", Play: func(s *Stage) {
		ada := s.Customer("pro")
		second := s.WithKey(ada.Account)
		s.OK(s.Operator.RevokeKey(ada.Key))
		for _, host := range s.Hosts {
			s.Refused(refusal(host(ada.Key.Text).Databases.List(ctx, apiclient.Page{})), "UNAUTHORIZED")
		}
		second.SeesAll()
	}},
	{Name: "a replaced key has a new text and the same scope", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		selected := s.WithKey(ada.Account, one.ID)
		replaced := must(s.Operator.ReplaceKey(selected.Key))(s)

		s.Refused(refusal(selected.Databases.List(ctx, apiclient.Page{})), "UNAUTHORIZED")
		fresh := &Customer{Client: s.Hosts[0](replaced.Text), Account: ada.Account, Key: replaced, stage: s}
		fresh.Sees(one.ID)
		s.Refused(refusal(fresh.Databases.Get(ctx, other.ID)), "DATABASE_NOT_FOUND")
	}},
}
