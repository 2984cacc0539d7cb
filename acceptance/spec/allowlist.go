package spec

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
}
