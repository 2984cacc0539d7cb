package spec

var changingKeys = []Scenario{
	{Name: "a revoked key stops working at once, the other keys do not", Play: func(s *Stage) {
		ada := s.Customer("pro")
		second := s.WithKey(ada.Account)
		s.OK(s.Operator.RevokeKey(ada.Key))
		for _, host := range s.Hosts {
			_, err := host(ada.Key.Text).Databases(Page{})
			s.Refused(err, "UNAUTHORIZED")
		}
		second.SeesAll()
	}},
	{Name: "a replaced key has a new text and the same scope", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		selected := s.WithKey(ada.Account, one.ID)
		replaced, err := s.Operator.ReplaceKey(selected.Key)
		s.OK(err)

		_, err = selected.Databases(Page{})
		s.Refused(err, "UNAUTHORIZED")
		fresh := &Customer{API: s.Hosts[0](replaced.Text), Account: ada.Account, Key: replaced, stage: s}
		fresh.Sees(one.ID)
		_, err = fresh.Database(other.ID)
		s.Refused(err, "DATABASE_NOT_FOUND")
	}},
}
