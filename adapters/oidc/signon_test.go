package oidc

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

const (
	client   = "pgherd:one"
	secret   = "a secret with /+ and %"
	redirect = "https://app.example.org/sign-on/back"
	nonce    = "the nonce"
	verifier = "0123456789012345678901234567890123456789012"
)

// desk is an installation whose people an issuer knows, which is real.
type desk struct {
	*SignOn
	t      *testing.T
	clock  *fakeclock.Clock
	issuer *oidcissuer.Issuer
}

func newDesk(t *testing.T) *desk { return withSecret(t, secret) }

func withSecret(t *testing.T, secret string) *desk {
	t.Helper()
	d := &desk{t: t, clock: fakeclock.New(), issuer: start(t)}
	d.issuer.Register(client, secret)
	d.SignOn = check.Must(NewSignOn(d.options(), d.client(secret)))(t)
	return d
}

func (d *desk) options() Options {
	return Options{Policy: webhook.Policy{AllowPrivate: true}, ExtraCA: d.issuer.CA, Clock: d.clock, Timeout: 2 * time.Second}
}

func (d *desk) client(secret string) Client {
	return Client{Issuer: person.Issuer{URL: d.issuer.URL, ClientID: client}, Secret: secret, Redirect: redirect}
}

func (d *desk) begin() string {
	d.t.Helper()
	return check.Must(d.Begin(d.t.Context(), ports.SignOnRequest{State: "the state", Nonce: nonce, Verifier: verifier}))(d.t)
}

// answer is that of a browser in which Ada has logged in.
func (d *desk) answer(claims map[string]any) ports.SignOnAnswer {
	d.t.Helper()
	all := map[string]any{"sub": "ada"}
	maps.Copy(all, claims)
	_, code := d.issuer.Visits(d.begin(), d.clock.Now(), all)
	return ports.SignOnAnswer{Code: code, Verifier: verifier}
}

func (d *desk) finish(claims map[string]any) (person.Told, error) {
	d.t.Helper()
	return d.Finish(d.t.Context(), d.answer(claims))
}

func (d *desk) refused(what string, err error) {
	d.t.Helper()
	if err == nil || err.Error() != person.ErrSignOn().Error() {
		d.t.Errorf("%s: %v", what, err)
	}
}

// busy fails the test unless people are told to come back, and the operator why; and neither hears a secret.
func (d *desk) busy(what string, err error, why string) {
	d.t.Helper()
	if !fault.Has(err, fault.ServerBusy) || !strings.Contains(err.Error(), why) {
		d.t.Errorf("%s: %v, want %q", what, err, why)
	}
	for _, hidden := range []string{"a secret", "code-", verifier} {
		if err != nil && strings.Contains(err.Error(), hidden) {
			d.t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhereTheBrowserIsSent(t *testing.T) {
	d := newDesk(t)
	want := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "scope": {"openid email"}, "state": {"the state"},
		"nonce": {nonce}, "code_challenge_method": {"S256"}, "max_age": {"1209600"},
	}
	u := check.Must(url.Parse(d.begin()))(t)
	want.Set("code_challenge", u.Query().Get("code_challenge")) // which the issuer compares with the verifier
	if diff := cmp.Diff(want, u.Query()); diff != "" || u.Host != strings.TrimPrefix(d.issuer.URL, "https://") {
		t.Errorf("%s %s", u, diff)
	}
	again := check.Must(d.Begin(t.Context(), ports.SignOnRequest{State: "s", Nonce: nonce, Verifier: verifier, Anew: true}))(t)
	if q := check.Must(url.Parse(again))(t).Query(); q.Get("prompt") != "login" || q.Get("max_age") != "0" {
		t.Errorf("anew: %s", again)
	}
	for _, bad := range []any{nil, "http://x.example.org", "javascript:alert(1)", "//x.example.org/a", "https://x.example.org/#a"} {
		d := newDesk(t)
		d.issuer.Says(func(document map[string]any) { document["authorization_endpoint"] = bad })
		_, err := d.Begin(t.Context(), ports.SignOnRequest{})
		d.busy("an endpoint that is none", err, "authorization endpoint")
	}
}

func TestASignOnSaysWhoSomebodyIs(t *testing.T) {
	d := newDesk(t)
	now := d.clock.Now().Truncate(time.Second)
	got, err := d.finish(map[string]any{
		"aud": []string{client, "api"}, "azp": client, "nbf": now.Unix(), "auth_time": now.Add(-time.Hour).Unix(),
		"email": "ada@example.org", "email_verified": true,
	})
	want := person.Told{
		Issuer: d.issuer.URL, Subject: "ada", Audience: []string{client, "api"}, Party: client, Nonce: nonce,
		IssuedAt: now.UTC(), ExpiresAt: now.Add(5 * time.Minute).UTC(), NotBefore: now.UTC(),
		AuthenticatedAt: now.Add(-time.Hour).UTC(), Email: "ada@example.org", Vouched: true,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	a := d.answer(nil)
	check.Must(d.Finish(t.Context(), a))(t)
	_, err = d.Finish(t.Context(), a)
	d.refused("the same code again", err)
	a = d.answer(nil)
	a.Verifier = strings.ToUpper(verifier) + "x"
	_, err = d.Finish(t.Context(), a)
	d.refused("another verifier", err)
}

// The client shows who it is as the issuer wants it.
func TestHowTheClientShowsWhoItIs(t *testing.T) {
	says := func(methods ...string) func(*desk) {
		return func(d *desk) {
			d.issuer.Says(func(document map[string]any) { document["token_endpoint_auth_methods_supported"] = methods })
		}
	}
	for what, c := range map[string]struct {
		secret string
		says   func(*desk)
		basic  bool
	}{
		"nothing is said": {secret, func(*desk) {}, true},
		"basic":           {secret, says("client_secret_post", "client_secret_basic"), true},
		"post":            {secret, says("private_key_jwt", "client_secret_post"), false},
		"a public client": {"", says("none"), false},
	} {
		d := withSecret(t, c.secret)
		c.says(d)
		check.Must(d.finish(nil))(t)
		var basic, inBody bool
		d.issuer.Exchanges(func(w http.ResponseWriter, r *http.Request) {
			_, _, basic = r.BasicAuth()
			inBody = r.FormValue("client_secret") != ""
			http.NotFound(w, r)
		})
		_, err := d.finish(nil)
		d.busy(what, err, "HTTP status 404")
		if basic != c.basic || inBody != (c.secret != "" && !c.basic) {
			t.Errorf("%s: basic %t, in the body %t", what, basic, inBody)
		}
	}
	d := newDesk(t)
	says("private_key_jwt")(d)
	_, err := d.Begin(t.Context(), ports.SignOnRequest{})
	d.busy("neither", err, "client_secret_basic")
	d = newDesk(t)
	d.issuer.Register(client, "another secret")
	_, err = d.finish(nil)
	d.busy("a wrong secret", err, "invalid_client")
}

func TestWhoVouchesForAnAddress(t *testing.T) {
	d := newDesk(t)
	const email = "ada@example.org"
	for what, c := range map[string]struct {
		claims  map[string]any
		vouched bool
	}{
		"the standard's claim":        {map[string]any{"email_verified": true}, true},
		"as a text":                   {map[string]any{"email_verified": "true"}, true},
		"not verified":                {map[string]any{"email_verified": false}, false},
		"nothing":                     {nil, false},
		"another text":                {map[string]any{"email_verified": "yes"}, false},
		"an object":                   {map[string]any{"email_verified": map[string]any{}}, false},
		"a claim in other letters":    {map[string]any{"Email_Verified": true}, false},
		"Entra's":                     {map[string]any{"xms_edov": true}, true},
		"Entra's as a number":         {map[string]any{"xms_edov": 1}, true},
		"Entra's as a text":           {map[string]any{"xms_edov": "1"}, true},
		"Entra's, that it is not":     {map[string]any{"xms_edov": false}, false},
		"Entra's against the other":   {map[string]any{"xms_edov": true, "email_verified": false}, false},
		"an address in other letters": {map[string]any{"Email": "eve@example.org", "email_verified": true}, true},
	} {
		all := map[string]any{"email": email}
		maps.Copy(all, c.claims)
		got, err := d.finish(all)
		if err != nil || got.Email != email || got.Vouched != c.vouched {
			t.Errorf("%s: %q %t, %v", what, got.Email, got.Vouched, err)
		}
	}
	// An issuer need not put the address into the ID token.
	asks := newDesk(t)
	asks.issuer.Says(func(document map[string]any) { document["userinfo_endpoint"] = asks.issuer.URL + "/userinfo" })
	_, err := asks.finish(nil)
	asks.busy("no answer", err, "HTTP status 401")
	asks.issuer.Tells(map[string]any{"sub": "ada", "email": email, "email_verified": true})
	if got, err := asks.finish(nil); err != nil || got.Email != email || !got.Vouched || got.Subject != "ada" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, info := range []map[string]any{
		{"sub": "eve", "email": email, "email_verified": true}, {"email": email, "email_verified": true},
	} {
		asks.issuer.Tells(info)
		if _, err := asks.finish(nil); !errors.Is(err, person.NotSigned) {
			t.Errorf("%v: %v", info, err)
		}
	}
}

// What the issuer has not signed with a key of its own is nothing, wherever it came from.
func TestWhatTheIssuerHasNotSigned(t *testing.T) {
	d, stranger := newDesk(t), start(t)
	theirs, _ := stranger.Key()
	key, kid := d.issuer.Key()
	whole := jose.JSONWebKey{Key: key, KeyID: kid}
	published := check.Must(whole.Public().MarshalJSON())(t)
	for what, sign := range map[string]func(map[string]any) string{
		"nothing":               func(map[string]any) string { return "" },
		"a text":                func(map[string]any) string { return "a.b.c" },
		"without a signature":   func(c map[string]any) string { return unsigned("none", kid, "", c) },
		"with the client's own": func(c map[string]any) string { return oidcissuer.Sign([]byte(strings.Repeat(secret, 2)), kid, c) },
		"with what is public":   func(c map[string]any) string { return oidcissuer.Sign(published, kid, c) },
		"with another's key":    func(c map[string]any) string { return oidcissuer.Sign(theirs, kid, c) },
		"as another issuer":     func(c map[string]any) string { c["iss"] = stranger.URL; return stranger.Token(c) },
		"for another issuer":    func(c map[string]any) string { c["iss"] = stranger.URL; return d.issuer.Token(c) },
		"with a slash":          func(c map[string]any) string { c["iss"] = d.issuer.URL + "/"; return d.issuer.Token(c) },
		"changed afterwards": func(c map[string]any) string {
			parts := strings.Split(d.issuer.Token(c), ".")
			payload := check.Must(base64.RawURLEncoding.DecodeString(parts[1]))(t)
			parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), "ada", "eve", 1)))
			return strings.Join(parts, ".")
		},
		"with a claim of a wrong type": func(c map[string]any) string { c["auth_time"] = "now"; return d.issuer.Token(c) },
	} {
		d.issuer.Signs(sign)
		if got, err := d.finish(nil); !errors.Is(err, person.NotSigned) || got.Subject != "" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	d.issuer.Signs(nil)
	d.clock.Advance(pause)
	d.issuer.Rotate(jose.RS256)
	check.Must(d.finish(nil))(t)
}

// An answer that another issuer has given is not taken to this one, where answers say whose they are.
func TestAnswersOfAnotherIssuer(t *testing.T) {
	d := newDesk(t)
	for what, c := range map[string]struct {
		names, taken bool
		issuer       string
	}{
		"it says nothing": {false, true, ""}, "it names itself": {false, true, d.issuer.URL},
		"another one": {false, false, "https://evil.example.org"}, "a like one": {false, false, d.issuer.URL + "/"},
		"it always names itself, and does": {true, true, d.issuer.URL}, "it always names itself, and does not": {true, false, ""},
	} {
		d.issuer.Says(func(document map[string]any) { document["authorization_response_iss_parameter_supported"] = c.names })
		d.clock.Advance(keysKept)
		a := d.answer(nil)
		a.Issuer = c.issuer
		before := d.issuer.Exchanged()
		_, err := d.Finish(t.Context(), a)
		if (err == nil) != c.taken || d.issuer.Exchanged() != before && !c.taken {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An issuer that misbehaves costs bounded time and memory, and is named in the operator's log.
func TestIssuersThatMisbehave(t *testing.T) {
	for what, c := range map[string]struct {
		by  func(d *desk)
		why string
	}{
		"it is gone":   {func(d *desk) { d.issuer.Stop() }, "connection refused"},
		"it is silent": {func(d *desk) { d.t.Cleanup(d.issuer.Silence()) }, "deadline"},
		"it redirects": {func(d *desk) {
			d.issuer.Exchanges(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, d.issuer.URL+"/keys", http.StatusTemporaryRedirect)
			})
		}, "HTTP status 307"},
		"an endless answer": {func(d *desk) {
			d.issuer.Exchanges(func(w http.ResponseWriter, r *http.Request) {
				for _, err := w.Write([]byte{'{'}); err == nil; {
					_, err = w.Write(make([]byte, 4<<10))
				}
			})
		}, "too large"},
		"no JSON":  {func(d *desk) { d.issuer.Exchanges(says("<html>")) }, "no JSON"},
		"an error": {func(d *desk) { d.issuer.Exchanges(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }) }, "500"},
		"no token": {func(d *desk) { d.issuer.Exchanges(says(`{"id_token":"x"}`)) }, "did not answer"},
		"a refusal with much to say": {func(d *desk) {
			d.issuer.Exchanges(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":"a secret ` + r.FormValue("code") + `"}`))
			})
		}, "refuses to exchange codes"},
		"it has another name": {func(d *desk) {
			d.issuer.Says(func(document map[string]any) { document["issuer"] = d.issuer.URL + "/" })
			d.clock.Advance(keysKept + keysOutlive + time.Minute)
		}, "calls itself"},
		"codes are exchanged without TLS": {func(d *desk) {
			d.issuer.Says(func(document map[string]any) { document["token_endpoint"] = "http://127.0.0.1/token" })
			d.clock.Advance(keysKept)
		}, "https"},
	} {
		d := newDesk(t)
		a := d.answer(nil)
		c.by(d)
		began := time.Now()
		_, err := d.Finish(t.Context(), a)
		d.busy(what, err, c.why)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: %s", what, took)
		}
	}
}

// What a real issuer says wrongly opens no session, with all that the core asks of it.
func TestSignOnsOfARealIssuer(t *testing.T) {
	d := newDesk(t)
	store := memstore.New()
	cp := check.Must(controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: fakeagent.New(d.clock), Clock: d.clock, Entropy: fakeentropy.New(),
		Secrets: fakebox.New(), SignOn: d.SignOn,
	}, controlplane.Config{Limits: map[ratelimit.Class]ratelimit.Limit{ratelimit.LogIn: {Count: 1000, Period: time.Minute}}}))(t)
	ada := operator.NewAccount{Email: "ada@example.org", Name: "Ada", Plan: account.Free}
	_, _, err := cp.Operator.CreateAccount(t.Context(), ada)
	check.NoError(t, err)
	from := people.Client{Address: netip.MustParseAddr("192.0.2.1")}
	at := func(after time.Duration) int64 { return d.clock.Now().Add(after).Unix() }
	signOn := func(claims map[string]any) (people.Entered, error) {
		on := check.Must(cp.People.BeginSignOn(t.Context(), from))(t)
		all := map[string]any{"sub": "ada", "email": "Ada@Example.org", "email_verified": true}
		maps.Copy(all, claims)
		state, code := d.issuer.Visits(on.URL, d.clock.Now(), all)
		return cp.People.LogInBySignOn(t.Context(), people.Returned{Token: on.Token, State: state, Code: code}, from)
	}
	for what, claims := range map[string]map[string]any{
		"another audience":        {"aud": "other"},
		"no audience":             {"aud": nil},
		"an audience beside ours": {"aud": []string{client, "other"}},
		"for another client":      {"azp": "other"},
		"another nonce":           {"nonce": "other"},
		"no nonce":                {"nonce": nil},
		"an expired one":          {"exp": at(-2 * time.Minute)},
		"one without end":         {"exp": nil},
		"one that begins later":   {"nbf": at(2 * time.Minute)},
		"one issued later":        {"iat": at(2 * time.Minute)},
		"another issuer":          {"iss": "https://other.example.org"},
		"no issuer":               {"iss": nil},
		"no subject":              {"sub": nil},
	} {
		_, err := signOn(claims)
		d.refused(what, err)
	}
	if _, err := signOn(map[string]any{"email_verified": nil}); !fault.Has(err, fault.Forbidden) {
		t.Errorf("an address that nobody has verified: %v", err)
	}
	in := check.Must(signOn(nil))(t)
	if again := check.Must(signOn(map[string]any{"email": nil}))(t); again.Session.UserID != in.Session.UserID {
		t.Error("another person the second time")
	}
}

func TestClientsThatNoIssuerTakes(t *testing.T) {
	d := newDesk(t)
	for what, change := range map[string]func(*Options, *Client){
		"no client":            func(_ *Options, c *Client) { c.ClientID = "" },
		"an odd client":        func(_ *Options, c *Client) { c.ClientID = "a\nb" },
		"no issuer":            func(_ *Options, c *Client) { c.URL = "" },
		"one without TLS":      func(_ *Options, c *Client) { c.URL = "http://login.example.org" },
		"one with a query":     func(_ *Options, c *Client) { c.URL = "https://login.example.org?a" },
		"no page":              func(_ *Options, c *Client) { c.Redirect = "" },
		"a page without TLS":   func(_ *Options, c *Client) { c.Redirect = "http://app.example.org/back" },
		"no certificate":       func(o *Options, _ *Client) { o.ExtraCA = []byte("x") },
		"one at this machine":  func(o *Options, _ *Client) { o.Policy = webhook.Policy{} },
		"one on a private net": func(o *Options, c *Client) { o.Policy, c.URL = webhook.Policy{}, "https://10.0.0.1" },
	} {
		o, c := d.options(), d.client(secret)
		change(&o, &c)
		if _, err := NewSignOn(o, c); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
