package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var rotatingRoles = []Scenario{
	{Name: "a rotation kills the old password and all that it opened, and disturbs nobody else", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, old := ada.AddsLogin(made, "Reports", "read_only")
		_, neighbour := ada.AddsLogin(made, "Jobs", "read_only")
		sessions := s.bothIn(old)
		others := slices.Concat(s.bothIn(neighbour), s.bothIn(made.Login()))

		change := ada.Rotates(made, role, "rotate-1")
		s.That(change.Kind == "rotate" && change.RoleID == role.RoleID && change.Profile == "custom" && change.OperationID != "" &&
			change.CredentialGeneration == role.CredentialGeneration+1, "the change is %+v", change)
		s.closed(sessions...)
		s.bothOut(old)
		fresh := ada.Reveals(made, role)
		s.That(fresh.Password != old.Password && fresh.CredentialGeneration == 2, "it is %+v", fresh.Role)
		s.bothIn(fresh.Login())
		s.open(others...)
		s.bothIn(neighbour)
		shown := ada.FindsRole(made, role)
		s.That(shown.Status == "ready" && shown.OperationID == nil && shown.CredentialGeneration == 2, "it is %+v", shown)
	}},
	{Name: "rotation, revocation and deletion end transactions", Both: true, Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		must(s.SQL.Run(made.Login(), "CREATE TABLE note (body text)"))(s)
		for what, change := range map[string]func(wire.Role){
			"rotate": func(r wire.Role) { ada.Rotates(made, r, "rotate-1") },
			"revoke": func(r wire.Role) { ada.Revokes(made, r) },
			"delete": func(r wire.Role) { ada.Deletes(made, r) },
		} {
			role, login := ada.AddsLogin(made, what, "read_write")
			talks := []Talk{s.writes(login), s.writes(login.ByTransaction())}
			change(role)
			for _, talk := range talks {
				_, err := talk.Say("COMMIT")
				s.That(err != nil, "%s: the transaction was committed", what)
			}
		}
		rows := must(s.SQL.Run(made.Login(), "SELECT body FROM note"))(s)
		s.That(len(rows) == 0, "the table has %v", rows)
	}},
	{Name: "a role that spoils its own log-in, or is changing its password, keeps no rotation from its end", Both: true,
		Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
			ada, made := s.Owner()
			spoilt, login := ada.AddsLogin(made, "Jobs", "read_only")
			must(s.SQL.Run(login, "ALTER ROLE "+spoilt.Username+" SET local_preload_libraries = 'nothing'"))(s)
			ada.Rotates(made, spoilt, "rotate-1")
			busy, other := ada.AddsLogin(made, "Reports", "read_only")
			talk := must(s.SQL.Talk(other))(s)
			s.Cleanup(talk.Close)
			for _, statement := range []string{"BEGIN", "ALTER ROLE " + busy.Username + " PASSWORD 'a password of its own'"} {
				must(talk.Say(statement))(s)
			}
			ada.Rotates(made, busy, "rotate-2")
			s.bothIn(ada.Reveals(made, busy).Login())
			ada.Deletes(made, spoilt)
			ada.Sets(made.ID, "restart", "active")
		}},
	{Name: "a repeated rotation answers alike and is not applied again", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		first := ada.Rotates(made, role, "rotate-1")
		now := ada.Reveals(made, role)
		open := s.bothIn(now.Login())
		s.That(ada.Rotates(made, role, "rotate-1") == first, "the second answer differs")
		replayed := must(ada.ReplayChange(made.ID, role.RoleID, first.OperationID))(s)
		read := must(ada.Roles.GetChange(ctx, made.ID, role.RoleID, first.OperationID))(s)
		s.That(replayed == first && read == first, "the answers are\n%+v\n%+v\n%+v", first, replayed, read)
		s.open(open...)
		s.That(ada.Reveals(made, role) == now, "the password was changed again")

		second := ada.Rotates(made, role, "rotate-2")
		s.That(second.OperationID != first.OperationID && second.CredentialGeneration == 3, "%+v", second)
		s.That(ada.Rotates(made, role, "rotate-1") == first, "the first change's answer differs after the second")
	}},
	{Name: "a key stands for one change of one role", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, other := ada.AddsRole(made, "Reports", "custom"), ada.AddsRole(made, "Jobs", "custom")
		ada.Rotates(made, role, "change-1")
		s.Refused(refusal(ada.ChangeRole(made.ID, role.RoleID, "revoke", "change-1")), "MANAGED_ROLE_CONFLICT")
		s.Refused(refusal(ada.ChangeRole(made.ID, other.RoleID, "rotate", "change-1")), "MANAGED_ROLE_CONFLICT")
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "50 rotations in a row disturb none of 100 clients of the other logins", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada := s.Customer("business")
			made := ada.Creates("orders")
			role, last := ada.AddsLogin(made, "Reports", "read_only")
			other := ada.AddsRoleAs(made, NewRole{
				DisplayName: "Jobs", AccessProfile: "read_write", ConnectionLimit: 20, IdempotencyKey: "jobs",
			})
			all := slices.Concat(
				s.standBy(made.Login(), 40), s.standBy(ada.RevealsLogin(made, "runtime").LogIn(), 20),
				s.standBy(ada.RevealsLogin(made, "readonly").LogIn().ByTransaction(), 20),
				s.standBy(ada.Reveals(made, other).Login().ByTransaction(), 20),
			)
			for n := range 50 {
				if n%10 == 0 { // a rotation ends clients of its own, too
					last = ada.Reveals(made, role).Login()
					s.bothIn(last)
				}
				ada.Rotates(made, role, nth("rotate", n))
			}
			for i, b := range all {
				rows, err := b.talk.Say(sight)
				s.That(err == nil && rows[0] == b.saw, "client %d saw %s, and now %v: %v", i, b.saw, rows, err)
			}
			s.bothOut(last)
			s.bothIn(ada.Reveals(made, role).Login())
		}},
	{Name: "20 requests at once with one key rotate once", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, old := ada.AddsLogin(made, "Reports", "read_only")
		answers := make([]wire.RoleChange, 20)
		errs := s.atOnce(len(answers), func(i int) (err error) {
			answers[i], err = ada.on(i).ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1")
			return err
		})
		for i, err := range errs {
			s.OK(err)
			s.That(answers[i].OperationID == answers[0].OperationID && answers[i].CredentialGeneration == 2, "%+v", answers[i])
		}
		s.That(ada.Rotates(made, role, "rotate-1").CredentialGeneration == 2, "it was applied again")
		s.bothOut(old)
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "of different rotations at once each is done or refused, and the last password works", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		done := int64(0)
		for _, err := range s.atOnce(8, func(i int) error {
			_, err := ada.on(i).ChangeRole(made.ID, role.RoleID, "rotate", nth("rotate", i))
			return err
		}) {
			if err == nil {
				done++
				continue
			}
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
		}
		s.Eventually("the last one is done", func() bool { return ada.FindsRole(made, role).Status == "ready" })
		fresh := ada.Reveals(made, role)
		s.That(done > 0 && fresh.CredentialGeneration == 1+done, "%d were done; it is %+v", done, fresh.Role)
		s.bothIn(fresh.Login())
	}},
}

// bystander is a client with an open transaction, and what it saw of that.
type bystander struct {
	talk Talk
	saw  string
}

// sight is the server connection of a client and its transaction.
const sight = "SELECT pg_backend_pid() || ' ' || txid_current()"

// standBy opens n clients of one login.
func (s *Stage) standBy(l Login, n int) (all []bystander) {
	s.Helper()
	for range n {
		talk := must(s.SQL.Talk(l))(s)
		s.Cleanup(talk.Close)
		must(talk.Say("BEGIN"))(s)
		saw := must(talk.Say(sight))(s)
		all = append(all, bystander{talk, saw[0]})
	}
	return all
}

// writes opens a transaction and leaves it open.
func (s *Stage) writes(l Login) Talk {
	s.Helper()
	talk := must(s.SQL.Talk(l))(s)
	s.Cleanup(talk.Close)
	for _, statement := range []string{"BEGIN", "INSERT INTO public.note VALUES ('lost')"} {
		must(talk.Say(statement))(s)
	}
	return talk
}
