package spec

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

var inviting = []Scenario{
	{Name: "a user is added as a member, and again with another role and the same ID", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := s.Customer("free")
		added := ada.Adds(made, strings.ToUpper(bob.Account.Email), "viewer")
		s.That(added.Kind == "member" && added.UserID == bob.Account.UserID && added.Email == bob.Account.Email, "%+v", added)
		again := ada.Adds(made, bob.Account.Email, "admin")
		s.That(again.Kind == "member" && again.ID == added.ID && again.Role == "admin", "%+v", again)
		member := id.MembershipID(added.ID)
		changed := must(ada.Members.SetRole(ctx, made.ID, member, wire.SetMemberRole{Role: "developer"}))(s)
		people := must(ada.Members.List(ctx, made.ID))(s)
		s.That(people.Owner.UserID == ada.Account.UserID && people.Owner.Email == ada.Account.Email, "the owner is %+v", people.Owner)
		s.That(len(people.Members) == 1 && people.Members[0] == changed && changed.ID == member && changed.Role == "developer",
			"the members are %+v", people.Members)
		s.That(len(people.Invitations) == 0, "the invitations are %+v", people.Invitations)
		s.Refused(refusal(ada.Members.SetRole(ctx, made.ID, nobodysID, wire.SetMemberRole{Role: "admin"})), "MEMBER_NOT_FOUND")
		s.Refused(ada.Members.Remove(ctx, made.ID, nobodysID), "MEMBER_NOT_FOUND")
	}},
	{Name: "somebody new is invited by mail, accepts once, and is a member", Play: func(s *Stage) {
		ada, made := s.Owner()
		address := s.address()
		invited := ada.Adds(made, address, "developer")
		s.That(invited.Kind == "invitation" && invited.Status == "open" && invited.Email == address &&
			invited.ExpiresAt.Sub(invited.CreatedAt) == 7*24*time.Hour, "%+v", invited)
		listed := must(ada.Members.ListInvitations(ctx, made.ID))(s)
		s.That(len(listed) == 1 && string(listed[0].ID) == invited.ID, "the invitations are %+v", listed)
		token := s.MailsTo(address, 1)[0].Token()
		s.Refused(refusal(s.accepts(wire.AcceptInvitation{Token: token})), "VALIDATION_ERROR", "name")
		joined := must(s.accepts(newcomer(token)))(s)
		s.That(joined.DatabaseID == made.ID && joined.Email == address && joined.Role == "developer" && joined.Name == "Bob",
			"%+v", joined)
		s.Refused(refusal(s.accepts(newcomer(token))), "INVITATION_NOT_FOUND")
		people := must(ada.Members.List(ctx, made.ID))(s)
		s.That(len(people.Members) == 1 && people.Members[0].ID == joined.ID && len(people.Invitations) == 0, "%+v", people)
		s.That(ada.Adds(made, address, "viewer").ID == string(joined.ID), "the person is no user")
	}},
	{Name: "a user accepts without a name and a password, and keeps the own account apart", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := s.Customer("pro")
		own := bob.Creates("own")
		address := s.address()
		ada.Adds(made, address, "viewer")
		ada.Adds(made, bob.Account.Email, "viewer")
		joined := must(s.accepts(newcomer(s.MailsTo(address, 1)[0].Token())))(s)
		other := ada.Creates("other")
		ada.Adds(other, address, "admin") // who is a user by now
		s.That(len(must(ada.Members.List(ctx, other.ID))(s).Members) == 1, "%s is no member", joined.Email)
		s.That(len(bob.SeesAll()) == 1 && bob.SeesAll()[0] == own.ID, "bob's own key sees %v", bob.SeesAll())
		key := s.WithKey(bob.Account, made.ID)
		s.That(len(key.SeesAll()) == 1 && key.SeesAll()[0] == made.ID, "the key for the shared one sees %v", key.SeesAll())
	}},
	{Name: "a new token ends the old one, and a deleted invitation its own; all refused tokens get the same bytes",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			bob, eve := s.address(), s.address()
			invited := id.InvitationID(ada.Adds(made, bob, "viewer").ID)
			first := s.MailsTo(bob, 1)[0].Token()
			resent := must(ada.Members.ResendInvitation(ctx, made.ID, invited))(s)
			s.That(resent.ID == invited && resent.Status == "open", "%+v", resent)
			second := s.MailsTo(bob, 2)[1].Token()
			deleted := id.InvitationID(ada.Adds(made, eve, "viewer").ID)
			withdrawn := s.MailsTo(eve, 1)[0].Token()
			s.That(len(must(ada.Members.ListInvitations(ctx, made.ID))(s)) == 2, "the list has not both")
			s.OK(ada.Members.DeleteInvitation(ctx, made.ID, deleted))
			s.Refused(ada.Members.DeleteInvitation(ctx, made.ID, deleted), "INVITATION_NOT_FOUND")
			s.Refused(refusal(ada.Members.ResendInvitation(ctx, made.ID, deleted)), "INVITATION_NOT_FOUND")
			must(s.accepts(newcomer(second)))(s)
			s.Refused(refusal(ada.Members.ResendInvitation(ctx, made.ID, invited)), "INVITATION_NOT_FOUND")
			var answers []Answer
			for _, token := range []string{first, second, withdrawn, "x", strings.Repeat("0", 40)} {
				answer := s.sends(acceptance(token, s.someAddress()))
				s.Refused(answer.refusal(), "INVITATION_NOT_FOUND")
				answers = append(answers, answer)
				s.That(answer.Status == 404 && bytes.Equal(answer.Body, answers[0].Body), "%d %s", answer.Status, answer.Body)
			}
		}},
	{Name: "an invitation is good for seven days, and can be sent again later", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada, made := s.Owner()
		address := s.address()
		invited := id.InvitationID(ada.Adds(made, address, "viewer").ID)
		token := s.MailsTo(address, 1)[0].Token()
		s.OK(s.Clock.Advance(7 * 24 * time.Hour))
		s.Refused(refusal(s.accepts(newcomer(token))), "INVITATION_NOT_FOUND")
		listed := must(ada.Members.ListInvitations(ctx, made.ID))(s)
		s.That(len(listed) == 1 && listed[0].Status == "expired", "%+v", listed)
		must(ada.Members.ResendInvitation(ctx, made.ID, invited))(s)
		must(s.accepts(newcomer(s.MailsTo(address, 2)[1].Token())))(s)
	}},
	{Name: "of many who use one token at once one becomes a member", Play: func(s *Stage) {
		ada, made := s.Owner()
		address := s.address()
		ada.Adds(made, address, "viewer")
		token, won := s.MailsTo(address, 1)[0].Token(), 0
		for _, err := range s.atOnce(8, func(int) error { return refusal(s.accepts(newcomer(token))) }) {
			if err == nil {
				won++
				continue
			}
			s.Refused(err, "INVITATION_NOT_FOUND")
		}
		s.That(won == 1, "%d became members", won)
	}},
	{Name: "a removed member's keys lose the database at once, and do not get it back with a later membership",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			bob := s.Customer("pro")
			added := ada.Adds(made, bob.Account.Email, "admin")
			key := s.WithKey(bob.Account, made.ID)
			key.Sees(made.ID)
			s.OK(ada.Members.Remove(ctx, made.ID, id.MembershipID(added.ID)))
			s.Refused(refusal(key.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
			ada.Adds(made, bob.Account.Email, "admin")
			s.Refused(refusal(key.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
			key = s.WithKey(bob.Account, made.ID)
			key.Sees(made.ID)
			s.OK(s.Operator.RemoveMember(made.ID, strings.ToUpper(bob.Account.Email)))
			s.Refused(refusal(key.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
		}},
	{Name: "the owner is no member, and no more than fifty invitations are open", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.Refused(refusal(ada.adds(made, strings.ToUpper(ada.Account.Email), "admin")), "MEMBER_CONFLICT")
		for _, address := range []string{
			"", "bob", "a@b\r\nBcc: c@d", "Bob <bob@example.org>", "a@b,c@d", strings.Repeat("x", 254) + "@b",
		} {
			s.Refused(refusal(ada.adds(made, address, "admin")), "VALIDATION_ERROR", "email")
		}
		for _, role := range []account.Standing{"", "owner", "Admin"} {
			s.Refused(refusal(ada.adds(made, s.address(), role)), "VALIDATION_ERROR", "role")
		}
		more := s.WithKey(ada.Account) // for its own limit
		for range 50 {
			more.Adds(made, s.address(), "viewer")
		}
		s.Refused(refusal(ada.adds(made, s.address(), "viewer")), "MEMBER_CONFLICT")
	}},
	{Name: "nobody is sent mail after mail", Play: func(s *Stage) {
		ada, made := s.Owner()
		address := s.address()
		var err error
		sent := 0
		for ; err == nil && sent < 100; sent++ {
			_, err = ada.adds(made, address, "viewer")
		}
		refused := s.Refused(err, "RATE_LIMITED")
		s.That(sent <= 10 && refused.RetryAfter > 0, "%d mails, then %+v", sent-1, refused)
	}},
	{Name: "acceptances are limited by client address", Play: func(s *Stage) {
		stranger := s.someAddress()
		answer := s.sends(acceptance("x", stranger))
		s.That(answer.number(s, "X-RateLimit-Limit") > 0, "the headers are %v", answer.Header)
		for n := 0; answer.Status == 404 && n < 100; n++ {
			answer = s.sends(acceptance("x", stranger))
		}
		s.Refused(answer.refusal(), "RATE_LIMITED")
		s.That(answer.number(s, "Retry-After") > 0, "the headers are %v", answer.Header)
		s.That(s.sends(acceptance("x", s.someAddress())).Status == 404, "another address is turned away, too")
	}},
	{Name: "in a maintenance window nobody accepts", Alone: true, Play: func(s *Stage) {
		s.OK(s.Operator.SetMaintenance(true))
		s.finally(func() error { return s.Operator.SetMaintenance(false) })
		s.Refused(s.sends(acceptance("x", s.someAddress())).refusal(), "MAINTENANCE")
	}},
}

// address is one that no user has.
func (s *Stage) address() string { return s.Name("somebody") + "@example.org" }

func (c *Customer) adds(db Created, email string, role account.Standing) (wire.AddedMember, error) {
	return c.Members.Add(ctx, db.ID, wire.AddMember{Email: email, Role: role})
}

// Adds gives somebody a role on a database, or invites.
func (c *Customer) Adds(db Created, email string, role account.Standing) wire.AddedMember {
	c.stage.Helper()
	return must(c.adds(db, email, role))(c.stage)
}

// accepts is an acceptance from a client address of its own.
func (s *Stage) accepts(a wire.AcceptInvitation) (wire.AcceptedInvitation, error) {
	return s.Hosts[1]("").Members.AcceptInvitation(ctx, a)
}

func newcomer(token string) wire.AcceptInvitation {
	return wire.AcceptInvitation{Token: token, Name: new("Bob"), Password: new("correct horse battery staple")}
}

func acceptance(token, from string) Request {
	return Request{Method: "POST", Path: "/api/v1/invitations/accept", From: from, Header: jsonHeader,
		Body: fmt.Appendf(nil, `{"token":%q,"name":"Bob","password":"correct horse battery staple"}`, token)}
}
