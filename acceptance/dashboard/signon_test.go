package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakesignon"
)

// signing is a world whose people are known to an issuer.
type signing struct {
	*world
	issuer *fakesignon.Issuer
}

func newSigning(t *testing.T, rules person.SignOnRules) *signing {
	t.Helper()
	rules.Name = "Acme Login"
	s := &signing{}
	s.world = newWorld(t, func(p *controlplane.Ports, c *controlplane.Config) {
		s.issuer = fakesignon.New(p.Clock)
		p.SignOn, c.SignOnRules = s.issuer, rules
	})
	return s
}

func known(email string) fakesignon.Person {
	return fakesignon.Person{Subject: "of " + email, Email: email}
}

// back is the address at which somebody comes back who has logged in where a tab leads.
func (s *signing) back(b *tab, who fakesignon.Person) string {
	s.Helper()
	if !strings.HasPrefix(b.away, s.issuer.Issuer().URL) {
		s.Fatalf("%s (%d) leads to %q, and not to the issuer:\n%s", b.at, b.status, b.away, textOf(b.page))
	}
	state, code := s.issuer.Visits(b.away, who)
	return "/sign-on/back?" + url.Values{"state": {state}, "code": {code}, "iss": {s.issuer.Issuer().URL}}.Encode()
}

// signsOn has somebody log in where a tab leads, and come back.
func (s *signing) signsOn(b *tab, who fakesignon.Person) *tab {
	s.Helper()
	return b.open(s.back(b, who))
}

const logIn, logInAgain = "Log in with Acme Login", "Log in again with Acme Login"

func TestALogInBySignOn(t *testing.T) {
	s := newSigning(t, person.SignOnRules{})
	ada := s.person("Ada", account.Pro)
	ada.open("/security").sees("Acme Login not linked").press("Log out")
	s.signsOn(ada.open("/security").follow(logIn), known(ada.email)).sees("Acme Login linked", "Since just now")
	if ada.at.Path != "/security" {
		t.Errorf("whoever has signed on is led to %s", ada.at)
	}
	for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`} {
		if s.signsOn(ada.open("/sign-on?next="+url.QueryEscape(next)), known(ada.email)).sees("Databases"); ada.at.Path != "/" {
			t.Errorf("whoever wants to go on to %s is led to %s", next, ada.at)
		}
	}
}

// What comes back counts once, in the browser that went, for ten minutes. Whoever is refused may try again at once.
func TestWhatComesBackFromTheIssuer(t *testing.T) {
	s := newSigning(t, person.SignOnRules{})
	ada := s.person("Ada", account.Pro)
	const refusal = "the sign-on was not accepted: try again"
	begin := func() (*tab, string) {
		t.Helper()
		b := s.tab(t).open("/login").follow(logIn)
		return b, s.back(b, known(ada.email))
	}
	_, callback := begin()
	s.tab(t).open(callback).refused(401, refusal, logIn)

	b, callback := begin()
	b.open("/sign-on/back?error=access_denied&error_description=because").refused(401, refusal, logIn).lacks("denied", "because")
	b.open(callback).refused(401, refusal) // the cookie is gone
	s.signsOn(b.follow(logIn), known(ada.email)).sees("Databases")

	b, callback = begin()
	b.open(callback).sees("Databases").open(callback).refused(401, refusal)
	b.open("/").sees("Databases") // nothing has ended by that

	b, callback = begin()
	s.clock.Advance(person.SignOnTime)
	b.open(callback).refused(401, refusal)

	b, _ = begin()
	s.signsOn(b, fakesignon.Person{Subject: "eve", Email: "eve@example.org"}).refused(403, "ask for an invitation first", logIn)
	b, callback = begin()
	s.issuer.Away(true)
	const away = "the sign-on does not answer"
	b.open(callback).refused(503, away, logIn).follow(logIn).refused(503, away, logIn)
}

func TestAProofBySignOn(t *testing.T) {
	s := newSigning(t, person.SignOnRules{})
	ada := s.person("Ada", account.Pro)
	proves := func(fields ...string) *tab {
		t.Helper()
		s.clock.Advance(person.Recent + time.Second)
		return ada.open("/keys").press("Make the key", "Name", "late").sees("Prove that it is you").press(logInAgain, fields...)
	}
	s.clock.Advance(person.Recent + time.Second)
	ada.open("/prove").lacks(logInAgain) // which is not linked yet
	s.signsOn(ada.open("/sign-on"), known(ada.email))

	s.signsOn(proves().sees("Go on to Acme Login"), known(ada.email)).sees("API keys").press("Make the key", "Name", "late").
		sees("shown once")
	s.signsOn(proves(), known("eve@example.org")).refused(403, "try again", logInAgain)
	s.signsOn(ada.press(logInAgain), known(ada.email)).sees("API keys")
	callback := s.back(proves(), known(ada.email))
	s.tab(t).open(callback).refused(401, "the sign-on was not accepted")
	if ada.press("Log out").open(callback); ada.at.Path != "/login" || strings.Contains(ada.at.RawQuery, "code") {
		t.Errorf("whoever has logged out is led to %s", ada.at)
	}
}

// Where the issuer does not stand for both factors, a log-in and a proof need a code as well.
func TestTheSecondFactorOfASignOn(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		s := newSigning(t, person.SignOnRules{BothFactors: trusted})
		ada := s.person("Ada", account.Pro)
		secret := ada.open("/security").press("Set up an app").code("Secret")
		code := func() string { s.clock.Advance(time.Minute); return codeOf(t, secret, s.clock.Now()) }
		ada.press("Confirm", "Code of the app", code()).sees("Recovery codes")
		s.signsOn(ada.press("Log out").follow(logIn), known(ada.email))
		if trusted {
			ada.sees("Databases").open("/prove")
			s.signsOn(ada.press(logInAgain), known(ada.email)).sees("Databases")
			continue
		}
		ada.sees("Second factor").press("Continue", "Code", code()).sees("Databases")
		ada.open("/prove?next=/keys").press(logInAgain, "Code", "000000").refused(403)
		s.signsOn(ada.press(logInAgain, "Code", code()), known(ada.email)).sees("API keys")
	}
}

// Where sign-on is required, no page offers another way in, and none works. A link of the operator's is for emergencies.
func TestASignOnIsRequired(t *testing.T) {
	s := newSigning(t, person.SignOnRules{Required: true})
	const email = "ada@example.org"
	_, _, err := s.cp.Operator.CreateAccount(t.Context(), operator.NewAccount{Email: email, Name: "Ada", Plan: account.Pro})
	s.ok(err)
	ada := &someone{tab: s.tab(t), email: email}
	ada.open("/login").sees(logIn).lacks("Password", "passkey", "Forgot")
	ada.post("/login", url.Values{"email": {email}, "password": {password}}).refused(403, "people log in by Acme Login here")
	s.signsOn(ada.follow(logIn), known(email)).sees("Databases")
	ada.open("/security").sees("Acme Login linked", "after Acme Login, the log-in asks").lacks("Password", "asskey")
	ada.open("/prove").lacks("Password", "passkey")
	s.signsOn(ada.press(logInAgain), known(email)).sees("Databases")

	shop := ada.makes("shop")
	ada.open(shop+"/members").press("Add the person", "E-mail address", "bob@example.org", "Role", "viewer")
	bob := s.tab(t).open(s.mailTo("bob@example.org")).sees("log in with Acme Login afterwards").lacks("Password")
	bob.press("Accept", "Your name", "Bob").sees("Log in")
	s.signsOn(bob.follow(logIn), known("bob@example.org")).sees("shop", "Your role viewer")

	link, err := s.cp.Operator.LinkUser(t.Context(), email)
	s.ok(err)
	ada.press("Log out").open("/reset/" + link.Token).sees("Log in by a link").press("Log in").sees("Databases")
	ada.open("/link/"+link.Token).press("Log in").refused(401, "does not work any more")
}
