package person_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
)

var issuer = person.Issuer{URL: "https://login.example.org", ClientID: "pgherd"}

func signOn() person.SignOn { return person.SignOn{Nonce: "nonce", Verifier: "verifier", At: start} }

// told is what the issuer says of Ada a minute later.
func told(change func(*person.Told)) person.Told {
	t := person.Told{
		Issuer: issuer.URL, Subject: "ada", Audience: []string{"pgherd"}, Nonce: "nonce",
		IssuedAt: start.Add(time.Minute), ExpiresAt: start.Add(6 * time.Minute), AuthenticatedAt: start.Add(time.Minute),
		Email: "Ada@Example.org", Vouched: true,
	}
	if change != nil {
		change(&t)
	}
	return t
}

func TestWhatIssuersSay(t *testing.T) {
	now := start.Add(time.Minute)
	type change = func(*person.Told)
	for want, cases := range map[person.Doubt]map[string]change{
		"": {
			"all is right":                    nil,
			"an issuer that names us as well": func(t *person.Told) { t.Party = "pgherd" },
			"an audience beside ours, for us": func(t *person.Told) { t.Audience, t.Party = []string{"api", "pgherd"}, "pgherd" },
			"a clock that is a little behind": func(t *person.Told) { t.ExpiresAt = now.Add(-59 * time.Second) },
			"a clock that is a little ahead": func(t *person.Told) {
				t.NotBefore, t.IssuedAt = now.Add(time.Minute), now.Add(time.Minute)
			},
			"an old log-in":     func(t *person.Told) { t.AuthenticatedAt = start.Add(-100 * time.Hour) },
			"no time of log-in": func(t *person.Told) { t.AuthenticatedAt = time.Time{} },
		},
		person.AnotherIssuer: {
			"another one": func(t *person.Told) { t.Issuer = "https://evil.example.org" },
			"a slash":     func(t *person.Told) { t.Issuer += "/" },
			"none":        func(t *person.Told) { t.Issuer = "" },
		},
		person.NotForUs: {
			"another audience":                 func(t *person.Told) { t.Audience = []string{"other"} },
			"no audience":                      func(t *person.Told) { t.Audience = nil },
			"no audience, though for us":       func(t *person.Told) { t.Audience, t.Party = nil, "pgherd" },
			"several, and not said for whom":   func(t *person.Told) { t.Audience = []string{"pgherd", "api"} },
			"several, for another one of them": func(t *person.Told) { t.Audience, t.Party = []string{"pgherd", "api"}, "api" },
			"ours, for another one":            func(t *person.Told) { t.Party = "api" },
			"ours in other letters":            func(t *person.Told) { t.Audience = []string{"PGHERD"} },
		},
		person.AnotherSignOn: {
			"another nonce": func(t *person.Told) { t.Nonce = "other" },
			"no nonce":      func(t *person.Told) { t.Nonce = "" },
		},
		person.NotNow: {
			"it has expired":      func(t *person.Told) { t.ExpiresAt = now.Add(-time.Minute) },
			"it says no end":      func(t *person.Told) { t.ExpiresAt = time.Time{} },
			"it begins later":     func(t *person.Told) { t.NotBefore = now.Add(61 * time.Second) },
			"it was issued later": func(t *person.Told) { t.IssuedAt = now.Add(61 * time.Second) },
		},
		person.NoSubject: {
			"nobody":              func(t *person.Told) { t.Subject = "" },
			"a long one":          func(t *person.Told) { t.Subject = strings.Repeat("x", 256) },
			"what is not ASCII":   func(t *person.Told) { t.Subject = "\u212aim" },
			"what nobody can see": func(t *person.Told) { t.Subject = "ada\x00" },
		},
	} {
		for name, change := range cases {
			err := signOn().Accept(told(change), issuer, now)
			if want == "" && err != nil || want != "" && !errors.Is(err, want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	if err := (person.SignOn{At: start}).Accept(told(func(t *person.Told) { t.Nonce = "" }), issuer, now); err == nil {
		t.Error("no nonce equals none")
	}
}

// A proof is a log-in at the issuer after it was asked for, whatever the browser did to the question.
func TestAProofIsALogInAtTheIssuerSince(t *testing.T) {
	proof, now := signOn(), start.Add(9*time.Minute)
	proof.SessionID = "s"
	for at, accepted := range map[time.Duration]bool{
		-time.Hour: false, -61 * time.Second: false, -time.Minute: true, 0: true, 9 * time.Minute: true, 10 * time.Minute: true,
		11 * time.Minute: false,
	} {
		err := proof.Accept(told(func(t *person.Told) {
			t.AuthenticatedAt, t.ExpiresAt = start.Add(at), now.Add(time.Minute)
		}), issuer, now)
		if accepted != (err == nil) || !accepted && !errors.Is(err, person.NotAnew) {
			t.Errorf("a log-in %s after: %v", at, err)
		}
	}
	silent := told(func(t *person.Told) { t.AuthenticatedAt = time.Time{} })
	if err := proof.Accept(silent, issuer, start); !errors.Is(err, person.NotAnew) {
		t.Errorf("no time of log-in: %v", err)
	}
}

// What is accepted was for this sign-on, for us and for now, whatever else it says.
func TestNothingElseIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string, right string) string {
			return rapid.SampledFrom([]string{right, right, "", "other", right + "x"}).Draw(t, name)
		}
		now := start.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, 5 * time.Minute, time.Hour}).Draw(t, "now"))
		said := told(func(s *person.Told) {
			s.Issuer, s.Nonce, s.Party = text("issuer", issuer.URL), text("nonce", "nonce"), text("party", "pgherd")
			s.Audience = rapid.SliceOfN(rapid.SampledFrom([]string{"pgherd", "other"}), 0, 3).Draw(t, "audience")
		})
		if signOn().Accept(said, issuer, now) != nil {
			return
		}
		ours := false
		for _, a := range said.Audience {
			ours = ours || a == "pgherd"
		}
		alone := len(said.Audience) == 1 || said.Party == "pgherd"
		if said.Issuer != issuer.URL || said.Nonce != "nonce" || !ours || !alone || said.Party == "other" ||
			now.Sub(said.ExpiresAt) >= time.Minute {
			t.Fatalf("%+v is accepted at %s", said, now)
		}
	})
}

func TestAddressesThatIssuersVouchFor(t *testing.T) {
	if email, err := told(nil).Address(); err != nil || email != "ada@example.org" {
		t.Errorf("%q, %v", email, err)
	}
	for name, change := range map[string]func(*person.Told){
		"none":               func(t *person.Told) { t.Email = "" },
		"not vouched for":    func(t *person.Told) { t.Vouched = false },
		"no address":         func(t *person.Told) { t.Email = "ada" },
		"with a name":        func(t *person.Told) { t.Email = "Ada <ada@example.org>" },
		"with a blank":       func(t *person.Told) { t.Email = "ada@example.org " },
		"with a like letter": func(t *person.Told) { t.Email = "\u212aim@example.org" },
	} {
		if email, err := told(change).Address(); !fault.Has(err, fault.Forbidden) || email != "" {
			t.Errorf("%s: %q, %v", name, email, err)
		}
	}
}

// A sign-on is as recent as the log-in at the issuer, which may be of this morning.
func TestHowRecentASignOnIs(t *testing.T) {
	for at, recent := range map[time.Duration]bool{
		0: true, time.Minute: true, -person.Recent: true, -person.Recent - 1: false, -9 * time.Hour: false,
	} {
		s := begun(false)
		s.ProvedAt = told(func(t *person.Told) { t.AuthenticatedAt = start.Add(at) }).ProvedAt(start)
		if err := s.RequireRecent(start); recent != (err == nil) || s.ProvedAt.After(start) {
			t.Errorf("a log-in %s before: %v, %v", at, s.ProvedAt, err)
		}
	}
	s := begun(false)
	if s.ProvedAt = (person.Told{}).ProvedAt(start); s.RequireRecent(start) == nil {
		t.Error("a log-in that nobody knows of is recent")
	}
}

func TestASignOnAnswersInTimeInItsSession(t *testing.T) {
	s := signOn()
	if err := s.Answers("", start.Add(person.SignOnTime-1)); err != nil {
		t.Error(err)
	}
	proof := s
	proof.SessionID = "s"
	for what, err := range map[string]error{
		"too late":                 s.Answers("", start.Add(person.SignOnTime)),
		"a log-in as a proof":      s.Answers("s", start),
		"a proof as a log-in":      proof.Answers("", start),
		"a proof of another login": proof.Answers("t", start),
	} {
		if !fault.Has(err, fault.Unauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSealedSignOns(t *testing.T) {
	s := person.SignOn{Nonce: "n", Verifier: "v", SessionID: "s", Factor: true, At: start}
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := person.ParseSignOn(text); err != nil || again != s {
		t.Errorf("%+v, %v", again, err)
	}
	if person.SignOnContext(token.Of("a")) == person.SignOnContext(token.Of("b")) {
		t.Error("two cookies are one")
	}
}

// There is one way to write the state of a sign-on.
func FuzzParseState(f *testing.F) {
	for _, text := range []string{"", "AA", "A", "AB", "AA==", "A\nA", "_-__", strings.Repeat("A", 1025)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sealed, ok := person.ParseState(text)
		if ok && person.State(sealed) != text {
			t.Errorf("%q is another way to write %q", text, person.State(sealed))
		}
	})
}

func TestIdentityAt(t *testing.T) {
	list := []person.Identity{{Issuer: "a", Subject: "1"}, {Issuer: "b", Subject: "2"}}
	if i, is := person.IdentityAt("b", list); !is || i.Subject != "2" {
		t.Errorf("%+v, %t", i, is)
	}
	if _, is := person.IdentityAt("", list); is {
		t.Error("one of no issuer")
	}
}
