package spec

import (
	"slices"
)

var optingIn = overSingleLogins([]Scenario{
	{Name: "an opt-in makes one overlay; whoever repeats it gets the same", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.OptsIn(ada.CreatesSingle("orders"))
		first := must(ada.LegacyRoles.OptIn(ctx, made.ID))(s)
		s.That(first.Status == "active" && first.OverlayID != "" && first.Generation > 0, "it is %+v", first)
		ada.AddsRole(made, "Reports", "read_only")
		for i, err := range s.atOnce(4, func(i int) error {
			again, err := ada.on(i).LegacyRoles.OptIn(ctx, made.ID)
			if err == nil && again != first {
				s.Errorf("the answer is %+v; it was %+v", again, first)
			}
			return err
		}) {
			s.Log(i)
			s.OK(err)
		}
		done := s.only(ada.ReadsActivity(made.ID), "legacy_roles.opted_in")
		s.That(done.Details["overlayId"] == string(first.OverlayID) && ada.did(done), "the log says %+v", done)
	}},
	{Name: "an owner keeps an open session, own grants, settings and default privileges", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.CreatesSingle("orders")
			s.stocks(made, "public")
			name := quoted(made.Name)
			must(s.SQL.Run(made.Login(), "CREATE SCHEMA sales", "ALTER ROLE "+name+" SET work_mem = '9MB'",
				"GRANT SELECT ON item TO PUBLIC", "ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO PUBLIC"))(s)
			talk := must(s.SQL.Talk(made.Login()))(s)
			s.Cleanup(talk.Close)
			must(talk.Say("BEGIN"))(s)
			const looks = "SELECT pg_backend_pid() || ' ' || count(*) FROM item"
			saw := must(talk.Say(looks))(s)
			const kept = `SELECT coalesce(string_agg(a::text, ' ' ORDER BY a::text), '') FROM (SELECT unnest(relacl) FROM pg_class
				WHERE relname = 'item' UNION ALL
				SELECT unnest(defaclacl) FROM pg_default_acl WHERE defaclnamespace <> 0 UNION ALL SELECT unnest(nspacl)
				FROM pg_namespace WHERE nspname = 'public' UNION ALL SELECT unnest(datacl) FROM pg_database
				WHERE datname = current_database()) AS x(a) WHERE a::text !~ '_g(ro|rw)='`
			before := must(s.SQL.Run(made.Login(), kept))(s)
			ada.OptsIn(made)
			again := must(talk.Say(looks))(s)
			s.That(slices.Equal(saw, again), "the transaction saw %v, and now %v", saw, again)
			must(talk.Say("COMMIT"))(s)
			after := must(s.SQL.Run(made.Login(), kept))(s)
			s.That(slices.Equal(after, before), "the privileges are\n%v\nand were\n%v", after, before)
			set := must(s.SQL.Run(made.Login(), "SHOW work_mem"))(s)
			s.That(set[0] == "9MB", "the owner's setting is %v", set)
			_, login := ada.AddsLogin(made, "Reports", "read_only")
			s.may(login, "read_only", "public")
		}},
})
