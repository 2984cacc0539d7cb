package spec

import "fmt"

var allowlisting = []Scenario{
	{Name: "without an entry any address may connect, with one only what it allows", Play: func(s *Stage) {
		ada, made := s.Owner()
		away := made.Login()
		away.From = Away
		s.Connects(made.Login())
		s.Connects(away)

		entry := ada.Allows(made.ID, Home.String())
		s.That(entry.CIDR == Home.String()+"/32", "a bare address became %s", entry.CIDR)
		s.Connects(made.Login())
		s.ShutOut(away)

		s.OK(ada.Allowlist.Remove(ctx, made.ID, entry.ID))
		s.Connects(away)
	}},
	{Name: "a change closes open connections that no entry allows any more, and no others", Play: func(s *Stage) {
		ada, made := s.Owner()
		away := made.Login()
		away.From = Away
		both := ada.Allows(made.ID, "127.0.0.0/8")
		near, far := s.Connects(made.Login()), s.Connects(away)

		ada.Allows(made.ID, Home.String())
		s.That(near.Alive() && far.Alive(), "another entry closed a connection")
		s.OK(ada.Allowlist.Remove(ctx, made.ID, both.ID))
		s.That(near.Alive(), "a connection ended that is still allowed")
		s.That(far.Ended(), "a connection is open that no entry allows")
	}},
	{Name: "many changes at once all hold, for both entries of the pooler", Play: func(s *Stage) {
		ada, made := s.Owner()
		errs := s.atOnce(10, func(i int) error {
			_, err := s.Hosts[i%len(s.Hosts)](ada.Key.Text).AddToAllowlist(made.ID, fmt.Sprintf("10.0.%d.0/24", i), "")
			return err
		})
		for _, err := range errs {
			s.OK(err)
		}
		list := must(ada.Allowlist.List(ctx, made.ID))(s)
		s.That(len(list) == 10, "the list has %d entries", len(list))
		second := made.Login()
		second.Database += ".transaction"
		s.ShutOut(made.Login())
		s.ShutOut(second)
		ada.Allows(made.ID, Home.String())
		s.Connects(made.Login())
		s.Connects(second)
	}},
	{Name: "a change while the database is stopped holds when it is started", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Sets(made.ID, "stop", "stopped")
		ada.Allows(made.ID, Away.String())
		away := made.Login()
		away.From = Away
		s.ShutOut(away)
		ada.Sets(made.ID, "start", "active")
		s.ShutOut(made.Login())
		s.Connects(away)
	}},
	{Name: "the list shows its entries, oldest first, with their notes", Play: func(s *Stage) {
		ada, made := s.Owner()
		must(ada.AddToAllowlist(made.ID, "192.0.2.0/24", " office "))(s)
		s.Pass(glance)
		ada.Allows(made.ID, "2001:db8::/32")
		list := must(ada.Allowlist.List(ctx, made.ID))(s)
		s.That(len(list) == 2 && list[0].CIDR == "192.0.2.0/24" && list[0].Description == "office" &&
			list[1].CIDR == "2001:db8::/32" && list[1].Description == "", "the list is %+v", list)
	}},
	{Name: "a network that is there already is refused", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Allows(made.ID, "192.0.2.0/24")
		s.Refused(refusal(ada.AddToAllowlist(made.ID, "192.0.2.0/24", "")), "VALIDATION_ERROR", "cidr")
	}},
	{Name: "a list holds 100 entries", Play: func(s *Stage) {
		ada, made := s.Owner()
		for i := range 100 {
			if i%(s.Writes/2) == 0 { // a key of its own for every half of what a key may do
				ada = s.WithKey(ada.Account)
			}
			ada.Allows(made.ID, fmt.Sprintf("10.0.%d.0/24", i))
		}
		s.Refused(refusal(s.WithKey(ada.Account).AddToAllowlist(made.ID, "10.1.0.0/24", "")), "VALIDATION_ERROR", "cidr")
	}},
	{Name: "an entry that is not there cannot be taken off", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		entry := ada.Allows(one.ID, "192.0.2.0/24")
		s.Refused(ada.Allowlist.Remove(ctx, one.ID, nobodysID), "ALLOWLIST_ENTRY_NOT_FOUND")
		s.Refused(ada.Allowlist.Remove(ctx, other.ID, entry.ID), "ALLOWLIST_ENTRY_NOT_FOUND")
	}},
}
