package controlplane_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/fakes/fakesignon"
	"github.com/pgherd/pgherd/ports"
)

// signing is a crowd whose people are known to an issuer: the owner as "ada".
type signing struct {
	*crowd
	issuer *fakesignon.Issuer
}

func ada() fakesignon.Person { return fakesignon.Person{Subject: "ada", Email: "Owner@example.org"} }

func newSigning(c *crowd, rules person.SignOnRules) *signing {
	s := &signing{c, fakesignon.New(c.clock)}
	c.ports.SignOn, c.ports.Passkeys = s.issuer, fakepasskeys.Verifier{Entropy: c.ports.Entropy}
	s.governed(rules)
	return s
}

// governed has the installation make something else of sign-ons.
func (s *signing) governed(rules person.SignOnRules) {
	s.t.Helper()
	config := withResets(s.t)
	config.Limits[ratelimit.LogIn] = ratelimit.Limit{Count: 1000, Period: time.Minute}
	rules.Name = "Acme Login"
	config.SignOnRules = rules
	s.ControlPlane = s.process(config)
}

// back is what the browser of a sign-on comes back with after somebody has logged in.
func (s *signing) back(on people.SigningOn, who fakesignon.Person) people.Returned {
	s.t.Helper()
	state, code := s.issuer.Visits(on.URL, who)
	return people.Returned{Token: on.Token, State: state, Code: code}
}

func (s *signing) signsOn(who fakesignon.Person) (people.Entered, error) {
	s.t.Helper()
	return s.People.LogInBySignOn(s.ctx, s.back(must(s.People.BeginSignOn(s.ctx, home()))(s.t), who), home())
}

// proves is a proof of a person by somebody who logs in at the issuer.
func (s *signing) proves(c access.Caller, who fakesignon.Person, code string) (people.Entered, error) {
	s.t.Helper()
	on, err := s.People.BeginSignOnProof(s.ctx, c, code)
	if err != nil {
		return people.Entered{}, err
	}
	return s.People.ProveBySignOn(s.ctx, c, s.back(on, who))
}

// told are the first lines of the mails of an address.
func (s *signing) told(email string) (lines []string) {
	s.t.Helper()
	s.mails(s.ControlPlane)
	for _, m := range s.mailbox.Mails(email) {
		first, _, _ := strings.Cut(m.Text, "\n")
		lines = append(lines, first)
	}
	return lines
}

func (s *signing) logged(what audit.Action) (list []audit.Details) {
	s.t.Helper()
	for _, e := range must(s.Operator.AccountAudit(s.ctx, s.account.ID, ports.Page{}))(s.t) {
		if e.What.Action == what {
			list = append(list, e.What.Details)
		}
	}
	return list
}

// The first time the address counts; from then on the subject does, whatever address it has at the issuer.
func TestASignOn(t *testing.T) {
	s := newSigning(newCrowd(t), person.SignOnRules{})
	in := must(s.signsOn(ada()))(t)
	equal(t, "whose session it is", in.Session.UserID, s.account.OwnerID)
	owner := must(s.visits(in.Token))(t)
	if by := must(s.People.Security(s.ctx, owner))(t); by.SignsOn == nil || !by.SignsOn.Equal(s.clock.Now()) {
		t.Errorf("linked since %v", by.SignsOn)
	}
	moved := ada()
	moved.Email, moved.Unverified = "ada@elsewhere.example", true
	known := home()
	known.Device = in.Device
	back := s.back(must(s.People.BeginSignOn(s.ctx, known))(t), moved)
	equal(t, "whose it is later", must(s.People.LogInBySignOn(s.ctx, back, known))(t).Session.UserID, s.account.OwnerID)
	if told := s.told("owner@example.org"); len(told) != 1 || !strings.Contains(told[0], "You signed on by Acme Login") {
		t.Errorf("told %q", told)
	}
	linked := s.logged(audit.SignOnLinked)
	if len(linked) != 1 || linked[0]["subject"] != "ada" || linked[0]["issuer"] != s.issuer.Issuer().URL {
		t.Errorf("logged %v", linked)
	}
	equal(t, "log-ins that were logged", len(s.logged(audit.SessionOpened)), 2)
}

// Who is nobody here, and who has the address of somebody here, hear the same, and get in nowhere.
func TestSignOnsOfStrangers(t *testing.T) {
	s := newSigning(newCrowd(t), person.SignOnRules{})
	stranger := func(what string, who fakesignon.Person) {
		t.Helper()
		if _, err := s.signsOn(who); err == nil || err.Error() != person.ErrStranger().Error() {
			t.Errorf("%s: %v", what, err)
		}
	}
	stranger("nobody", fakesignon.Person{Subject: "eve", Email: "eve@example.org"})
	refused(t, errOf(s.signsOn(fakesignon.Person{Subject: "eve", Email: "owner@example.org", Unverified: true})), fault.Forbidden)
	refused(t, errOf(s.signsOn(fakesignon.Person{Subject: "eve"})), fault.Forbidden)
	equal(t, "linked so far", len(s.logged(audit.SignOnLinked)), 0)

	must(s.signsOn(ada()))(t)
	stranger("who has the address by now", fakesignon.Person{Subject: "eve", Email: "owner@example.org"})
	stranger("the same subject in other letters", fakesignon.Person{Subject: "Ada", Email: "owner@example.org"})
	bob, _, _ := s.newAccount("bob@example.org", account.Free)
	as := ada()
	as.Email = "bob@example.org"
	equal(t, "whom the owner with Bob's address enters as", must(s.signsOn(as))(t).Session.UserID, s.account.OwnerID)
	equal(t, "sessions of Bob", len(s.sessionsOf(bob.OwnerID)), 0)

	ok(t, s.Operator.UnlinkSignOn(s.ctx, "owner@example.org"))
	equal(t, "sessions after the link has ended", len(s.sessionsOf(s.account.OwnerID)), 0)
	refused(t, s.Operator.UnlinkSignOn(s.ctx, "owner@example.org"), fault.ValidationError)
	again := ada()
	again.Subject = "ada-2"
	equal(t, "who is linked then", must(s.signsOn(again))(t).Session.UserID, s.account.OwnerID)
	stranger("the subject of before", ada())
}

// What comes back counts in the browser that went, in time, for what it went, with a code that works.
func TestWhatComesBackFromTheIssuer(t *testing.T) {
	s := newSigning(newCrowd(t), person.SignOnRules{})
	begin := func() people.SigningOn { t.Helper(); return must(s.People.BeginSignOn(s.ctx, home()))(t) }
	for what, change := range map[string]func(*people.Returned){
		"another browser":        func(r *people.Returned) { r.Token = begin().Token },
		"no cookie":              func(r *people.Returned) { r.Token = "" },
		"no state":               func(r *people.Returned) { r.State = "" },
		"a changed state":        func(r *people.Returned) { r.State = "A" + r.State },
		"another one's state":    func(r *people.Returned) { r.State = s.back(begin(), ada()).State },
		"no code":                func(r *people.Returned) { r.Code = "" },
		"another code":           func(r *people.Returned) { r.Code = "guess" },
		"a code of another":      func(r *people.Returned) { r.Code = s.back(begin(), ada()).Code },
		"another issuer":         func(r *people.Returned) { r.Issuer = "https://evil.example.org" },
		"a refusal":              func(r *people.Returned) { r.Refusal = "access_denied" },
		"ten minutes later":      func(*people.Returned) { s.clock.Advance(person.SignOnTime) },
		"a log-in for a session": nil,
	} {
		r := s.back(begin(), ada())
		var err error
		if change == nil {
			_, err = s.People.ProveBySignOn(s.ctx, s.person(), r)
		} else {
			change(&r)
			_, err = s.People.LogInBySignOn(s.ctx, r, home())
		}
		if err == nil || err.Error() != person.ErrSignOn().Error() {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "sessions by sign-on", len(s.logged(audit.SignOnLinked)), 0)

	on := begin()
	r := s.back(on, ada())
	r.Issuer = s.issuer.Issuer().URL
	must(s.People.LogInBySignOn(s.ctx, r, home()))(t)
	refused(t, errOf(s.People.LogInBySignOn(s.ctx, r, home())), fault.Unauthorized) // the same code again
	// With another code of the same sign-on, for which somebody logged in at the issuer once more, there is no more to be had.
	equal(t, "who enters then", must(s.People.LogInBySignOn(s.ctx, s.back(on, ada()), home()))(t).Session.UserID, s.account.OwnerID)

	s.issuer.Change = func(t *person.Told) { t.Audience = []string{"another client"} }
	refused(t, errOf(s.signsOn(ada())), fault.Unauthorized)
	s.issuer.Away(true)
	refused(t, errOf(s.People.BeginSignOn(s.ctx, home())), fault.ServerBusy)
	refused(t, errOf(s.People.LogInBySignOn(s.ctx, s.back(on, ada()), home())), fault.ServerBusy)
	refused(t, errOf(newCrowd(t).People.BeginSignOn(s.ctx, home())), fault.FeatureNotAvailable)
}

// The log has the cause, which people are not told.
func TestTheLogSaysWhySignOnsFail(t *testing.T) {
	c, log := newCrowd(t), &spy{}
	c.ports.Journal = log
	s := newSigning(c, person.SignOnRules{})
	s.issuer.Change = func(t *person.Told) { t.Nonce = "another" }
	refused(t, errOf(s.signsOn(ada())), fault.Unauthorized)
	s.issuer.Away(true)
	refused(t, errOf(s.People.BeginSignOn(s.ctx, home())), fault.ServerBusy)
	if e := log.events; len(e) != 2 || e[0].What != "sign_on.refused" || !errors.Is(e[0].Err, person.AnotherSignOn) ||
		e[0].RequestID != "request" || e[1].What != "sign_on.failed" || !fault.Has(e[1].Err, fault.ServerBusy) {
		t.Errorf("%+v", e)
	}
}

func TestTheSecondFactorOfASignOn(t *testing.T) {
	c, app, recovery := secured(t)
	s := newSigning(c, person.SignOnRules{})
	in := must(s.signsOn(ada()))(t)
	equal(t, "the status", in.Session.Status, person.AwaitsFactor)
	// Eve has the address by now, and no app.
	eve := must(s.signsOn(fakesignon.Person{Subject: "eve", Email: "owner@example.org"}))(t)
	equal(t, "linked before the factor", len(s.logged(audit.SignOnLinked)), 0)
	must(s.People.GiveFactor(s.ctx, in.Token, code(c, app), home()))(t)
	equal(t, "linked with it", s.logged(audit.SignOnLinked)[0]["subject"], "ada")
	refused(t, errOf(s.People.GiveFactor(s.ctx, eve.Token, recovery[0], home())), fault.Forbidden)
	refused(t, errOf(s.signsOn(fakesignon.Person{Subject: "eve", Email: "owner@example.org"})), fault.Forbidden)
	s.governed(person.SignOnRules{BothFactors: true})
	equal(t, "the status where the issuer stands for both", must(s.signsOn(ada()))(t).Session.Status, person.Open)
}

func TestASignOnProvesAgain(t *testing.T) {
	s := newSigning(newCrowd(t), person.SignOnRules{})
	s.setPassword(s.account.OwnerID, "")
	owner := must(s.visits(must(s.signsOn(ada()))(t).Token))(t)
	s.clock.Advance(person.Recent + time.Second)
	refused(t, errOf(s.People.BeginFactor(s.ctx, owner)), fault.LoginRequired)
	guest := s.guest(s.made("shop").Record.ID, account.Viewer)
	refused(t, errOf(s.proves(guest, ada(), "")), fault.Unauthorized)
	refused(t, errOf(s.proves(owner, fakesignon.Person{Subject: "eve", Email: "owner@example.org"}, "")), fault.Unauthorized)
	morning := ada()
	morning.LoggedIn = s.clock.Now().Add(-person.Recent - time.Second)
	again := must(s.visits(must(s.signsOn(morning))(t).Token))(t)
	refused(t, errOf(s.People.BeginFactor(s.ctx, again)), fault.LoginRequired) // the issuer has let the browser pass

	on := must(s.People.BeginSignOnProof(s.ctx, owner, ""))(t)
	old := people.SigningOn{URL: strings.Replace(on.URL, "prompt=login", "", 1), Token: on.Token}
	since := ada()
	since.LoggedIn = s.clock.Now().Add(-person.Recent / 2)
	refused(t, errOf(s.People.ProveBySignOn(s.ctx, owner, s.back(old, since))), fault.Unauthorized)
	refused(t, errOf(s.People.LogInBySignOn(s.ctx, s.back(on, ada()), home())), fault.Unauthorized) // a proof is no log-in
	in := must(s.People.ProveBySignOn(s.ctx, owner, s.back(on, ada())))(t)
	owner = must(s.visits(in.Token))(t)
	must(s.People.BeginFactor(s.ctx, owner))(t)
	refused(t, errOf(s.People.BeginSignOnProof(s.ctx, s.caller, "")), fault.Unauthorized)
}

// Where the issuer does not stand for both factors, a proof needs the code as well.
func TestASignOnProvesWithACode(t *testing.T) {
	c, app, recovery := secured(t)
	s := newSigning(c, person.SignOnRules{BothFactors: true})
	owner := must(s.visits(must(s.signsOn(ada()))(t).Token))(t)
	before := must(s.People.BeginSignOnProof(s.ctx, owner, ""))(t)
	s.governed(person.SignOnRules{})
	refused(t, errOf(s.proves(owner, ada(), "000000")), fault.Unauthorized)
	refused(t, errOf(s.People.ProveBySignOn(s.ctx, owner, s.back(before, ada()))), fault.Unauthorized) // begun without
	must(s.proves(owner, ada(), code(c, app)))(t)
	for range person.MaxFactorTries {
		refused(t, errOf(s.proves(owner, ada(), "000000")), fault.Unauthorized)
	}
	refused(t, errOf(s.proves(owner, ada(), recovery[0])), fault.Unauthorized) // the session has ended
}

// Each way in that passes by the issuer, where people have to sign on.
func TestASignOnIsRequired(t *testing.T) {
	c, app, _ := secured(t)
	s := newSigning(c, person.SignOnRules{})
	in := must(s.People.GiveFactor(s.ctx, s.entered().Token, code(c, app), home()))(t)
	owner, phone := must(s.visits(in.Token))(t), fakepasskeys.NewDevice("phone")
	must(s.registers(owner, phone))(t)
	asked := must(s.People.BeginPasskeyLogIn(s.ctx, home()))(t)
	proof := must(s.People.BeginPasskeyProof(s.ctx, owner))(t)
	ok(t, s.People.AskReset(s.ctx, "owner@example.org", home()))
	mailed := s.links("owner@example.org")[0]

	s.governed(person.SignOnRules{Required: true})
	required := person.SignOnRules{Name: "Acme Login"}.ErrRequired().Error()
	for what, err := range map[string]error{
		"a password":              errOf(s.tries("owner@example.org", password)),
		"nobody's password":       errOf(s.tries("nobody@example.org", password)),
		"asking for a link":       s.People.AskReset(s.ctx, "owner@example.org", home()),
		"a link":                  errOf(s.People.Reset(s.ctx, mailed, "a new password", home())),
		"a passkey":               errOf(s.People.BeginPasskeyLogIn(s.ctx, home())),
		"a passkey's answer":      errOf(s.People.LogInByPasskey(s.ctx, asked.Token, phone.Signs(asked.Options), home())),
		"a proof by the password": errOf(s.People.ProveAgain(s.ctx, owner, people.Proof{Password: password})),
		"a proof by a passkey":    errOf(s.People.BeginPasskeyProof(s.ctx, owner)),
		"its answer":              errOf(s.People.ProveByPasskey(s.ctx, owner, proof.Token, phone.Signs(proof.Options))),
	} {
		if err == nil || err.Error() != required {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "a sign-on", must(s.signsOn(ada()))(t).Session.Status, person.AwaitsFactor)

	// In an emergency the operator's link logs in, and nothing but the issuer is passed by.
	s.issuer.Away(true)
	refused(t, errOf(s.People.LogInByLink(s.ctx, mailed, home())), fault.Unauthorized)
	link, err := s.Operator.LinkUser(s.ctx, "owner@example.org")
	ok(t, err)
	in = must(s.People.LogInByLink(s.ctx, link.Token, home()))(t)
	equal(t, "the status", in.Session.Status, person.AwaitsFactor)
	s.clock.Advance(person.Touch)
	must(s.visits(must(s.People.GiveFactor(s.ctx, in.Token, code(c, app), home()))(t).Token))(t)
	if told := s.told("owner@example.org"); !strings.Contains(strings.Join(told, "\n"), "a link that the operator") {
		t.Errorf("told %q", told)
	}
	if _, err := s.People.LogInByLink(s.ctx, link.Token, home()); err == nil || err.Error() != person.ErrNoReset().Error() {
		t.Errorf("the link again: %v", err)
	}
	link, err = s.Operator.LinkUser(s.ctx, "owner@example.org")
	ok(t, err)
	s.clock.Advance(person.ResetTime)
	refused(t, errOf(s.People.LogInByLink(s.ctx, link.Token, home())), fault.Unauthorized)

	c.ports.SignOn = nil
	if _, err := controlplane.New(c.ports, controlplane.Config{SignOnRules: person.SignOnRules{Required: true}}); err == nil {
		t.Error("nobody could log in")
	}
}

// Who is invited where people have to sign on chooses no password, and signs on with the invited address.
func TestTheInvitedSignOn(t *testing.T) {
	s := newSigning(newCrowd(t), person.SignOnRules{Required: true})
	const email = "bob@example.org"
	bob := fakesignon.Person{Subject: "bob", Email: email}
	must(s.Members.Add(s.ctx, s.reached(s.made("shop").Record.ID), email, account.Viewer))(t)
	s.mails(s.ControlPlane)
	token := base62.FindString(s.mailbox.Mails(email)[0].Text)
	refused(t, errOf(s.signsOn(bob)), fault.Forbidden)
	refused(t, errOf(s.Members.Accept(s.ctx, newcomer(token))), fault.ValidationError)
	joined := must(s.Members.Accept(s.ctx, members.Acceptance{Token: token, Name: new("Bob")}))(t)
	in := must(s.signsOn(bob))(t)
	equal(t, "who signs on", in.Session.UserID, joined.UserID)
	equal(t, "databases", len(s.listed(must(s.visits(in.Token))(t))), 1)
}
