package spec

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
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
	{Name: "of many who opt in at once all get the same overlay", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.CreatesSingle("orders")
		answers := make([]wire.Overlay, 8)
		for _, err := range s.atOnce(len(answers), func(i int) (err error) {
			answers[i], err = ada.on(i).LegacyRoles.OptIn(ctx, made.ID)
			return err
		}) {
			s.OK(err)
		}
		for _, a := range answers {
			s.That(a.OverlayID == answers[0].OverlayID && a.Generation == answers[0].Generation, "%+v, %+v", a, answers[0])
		}
		ada.AddsRole(ada.OptsIn(made), "Reports", "custom")
	}},
	{Name: "without an opt-in, or while the database is stopped, there are no roles", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.CreatesSingle("orders")
		s.Refused(refusal(ada.CreateRole(made.ID, asksRole("Reports", 3))), "LEGACY_ROLE_CONFLICT")
		s.That(len(ada.ListsRoles(made)) == 0, "the list is %+v", ada.ListsRoles(made))
		ada.Sets(made.ID, "stop", "stopped")
		s.Refused(refusal(ada.LegacyRoles.OptIn(ctx, made.ID)), "LEGACY_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		ada.OptsIn(made)
		reserved := must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s)
		ada.Sets(made.ID, "stop", "stopped")
		ada.OptsIn(made) // it stands
		s.Refused(refusal(ada.LegacyRoles.Prepare(ctx, made.ID, reserved.RoleID)), "LEGACY_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		told := ada.Prepares(made, reserved)
		ada.Sets(made.ID, "stop", "stopped")
		s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, reserved.RoleID)), "LEGACY_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		must(ada.Roles.Admit(ctx, made.ID, reserved.RoleID))(s)
		s.bothIn(ada.Reveals(made, reserved).Login())
	}},
	{Name: "what is not activated is refused on every route; what was, works on", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "read_only")
		change := ada.Rotates(made, role, "rotate-1")
		login := ada.Reveals(made, role).Login()
		other := ada.CreatesAs(NewDatabase{Name: s.Name("other"), DisplayName: "O", RoleModel: "single_login"})
		s.OK(s.Operator.Enroll(other.ID, "all"))
		s.refusesAll(s.tryLegacy(ada, other.ID, role.RoleID, change.OperationID), "FEATURE_NOT_AVAILABLE")
		bob := ada.member(other, "viewer") // the gate comes before the right
		s.Refused(refusal(bob.LegacyRoles.OptIn(ctx, other.ID)), "FEATURE_NOT_AVAILABLE")

		s.activates(made, false)
		s.refusesAll(s.tryLegacy(ada, made.ID, role.RoleID, change.OperationID), "FEATURE_NOT_AVAILABLE")
		s.bothIn(login)
		s.activates(made, true)
		s.That(ada.FindsRole(made, role).Status == "ready" && ada.Reveals(made, role).Login() == login, "it is another role")
	}},
	{Name: "the service ends what it has to with roles that are deactivated: validities and pending changes", Alone: true,
		Needs: []Ability{MovesTime}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetCredentialValidity(ada.Account, day))
			made := ada.Creates("orders")
			_, first := ada.AddsLogin(made, "Reports", "read_only")
			role, second := ada.AddsLogin(made, "Jobs", "read_only")
			s.losesAgent()
			begun := must(ada.ChangeRole(made.ID, role.RoleID, "revoke", "revoke-1"))(s)
			s.That(begun.Status == "pending", "the change is %+v", begun)
			s.activates(made, false)
			s.OK(s.Agent.Start())
			out := func(l Login) func() bool {
				return func() bool {
					session, err := s.Connect(l)
					if err == nil {
						session.Close()
					}
					return err != nil
				}
			}
			s.Eventually("the revoked role is out", out(second))
			s.OK(s.Clock.Advance(day + time.Minute))
			s.Eventually("the expired role is out", out(first))
			s.activates(made, true)
			s.Eventually("one is expired and one is revoked", func() bool {
				list := ada.ListsRoles(made)
				return len(list) == 2 && list[0].Status == "expired" && list[1].Status == "revoked"
			})
		}},
	{Name: "with the feature off every route is refused; the roles work on", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.Operator.SetFeature("legacy-roles", false))
		s.finally(func() error { return s.Operator.SetFeature("legacy-roles", true) })
		s.refusesAll(s.tryLegacy(ada, made.ID, role.RoleID, nobodysID), "FEATURE_NOT_AVAILABLE")
		s.bothIn(login)
	}},
	{Name: "a key for others, and one for no such database, get the same; a key for it works", Play: func(s *Stage) {
		ada, eve := s.Customer("pro"), s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		role := ada.AddsRole(made, "Reports", "read_only")
		for _, c := range []*Customer{eve, s.WithKey(ada.Account, other.ID)} {
			s.refusesAll(s.tryLegacy(c, made.ID, role.RoleID, nobodysID), "DATABASE_NOT_FOUND")
			s.refusesAll(s.tryLegacy(c, nobodysID, role.RoleID, nobodysID), "DATABASE_NOT_FOUND")
		}
		bound := s.WithKey(ada.Account, made.ID)
		s.bothIn(bound.Reveals(made, bound.AddsRole(made, "Jobs", "custom")).Login())
		admin := ada.member(made, "admin")
		s.That(len(admin.ListsRoles(made)) == 2, "an admin sees %+v", admin.ListsRoles(made))
		viewer := ada.member(made, "viewer")
		s.That(len(viewer.ListsRoles(made)) == 2, "a viewer sees %+v", viewer.ListsRoles(made))
	}},
	{Name: "each model has its own routes, and no role of the other", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "read_only")
		managed := ada.CreatesAs(NewDatabase{Name: s.Name("managed"), DisplayName: "M"})
		s.That(s.Operator.ActivateLegacyRoles(managed.ID, true) != nil, "a managed database was activated")
		s.OK(s.Operator.Enroll(managed.ID, "all"))
		s.refusesAll(s.tryLegacy(ada, managed.ID, role.RoleID, nobodysID), "FEATURE_NOT_AVAILABLE")

		s.legacy = false // the codes of the managed routes are meant
		routes := ada.Client.Client.Roles
		s.That(len(must(routes.List(ctx, made.ID, true))(s)) == 0, "a legacy role is listed as a managed one")
		managing := ada.Client
		managing.Roles = routes
		s.Refused(refusal(managing.CreateRole(made.ID, asksRole("M", 1))), "MANAGED_ROLE_CONFLICT")
		for what, err := range map[string]error{
			"reveal": refusal(routes.Reveal(ctx, made.ID, role.RoleID)), "prepare": refusal(routes.Prepare(ctx, made.ID, role.RoleID)),
			"rename": refusal(routes.Rename(ctx, made.ID, role.RoleID, wire.RenameRole{DisplayName: "M"})),
			"rotate": refusal(managing.ChangeRole(made.ID, role.RoleID, "rotate", "m")),
			"delete": refusal(managing.DeleteRole(made.ID, role.RoleID)),
			"remove": refusal(routes.Remove(ctx, made.ID, role.RoleID)),
		} {
			s.Log(what)
			s.Refused(err, "ROLE_NOT_FOUND")
		}
		s.legacy = true
		s.bothIn(ada.Reveals(made, role).Login())
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
