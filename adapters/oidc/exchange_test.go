package oidc

import (
	"crypto/x509"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
)

const audience = "https://pgherd.example.org"

// installation trusts the pipelines of one issuer, which is real.
type installation struct {
	*controlplane.ControlPlane
	t         *testing.T
	clock     *fakeclock.Clock
	issuer    *oidcissuer.Issuer
	namespace id.NamespaceID
	tokens    atomic.Int64
}

func install(t *testing.T) *installation {
	t.Helper()
	in := &installation{t: t, clock: fakeclock.New(), issuer: start(t)}
	store := memstore.New()
	in.ControlPlane = check.Must(controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: fakeagent.New(in.clock), Clock: in.clock, Entropy: fakeentropy.New(),
		Secrets: fakebox.New(), Tokens: local(t, in.clock, in.issuer.CA),
	}, controlplane.Config{Limits: map[ratelimit.Class]ratelimit.Limit{ratelimit.Token: {Count: 1000, Period: time.Minute}}}))(t)
	a, _, err := in.Operator.CreateAccount(t.Context(), operator.NewAccount{Email: "a@example.org", Name: "A", Plan: account.Pro})
	check.NoError(t, err)
	in.namespace = check.Must(in.Operator.CreateNamespace(t.Context(), a.ID, "pipeline"))(t).ID
	check.Must(in.Operator.AddTrust(t.Context(), keys.NewTrust{
		NamespaceID: in.namespace, Issuer: in.issuer.URL, Audience: audience, Subject: "repo:acme/shop:ref:refs/heads/*",
	}))(t)
	return in
}

// claims are those of a token as GitHub Actions makes them, each time another one.
func (in *installation) claims(change map[string]any) map[string]any {
	now := in.clock.Now()
	c := map[string]any{
		"iss": in.issuer.URL, "sub": "repo:acme/shop:ref:refs/heads/feature/x", "aud": audience, "jti": fmt.Sprint(in.tokens.Add(1)),
		"iat": now.Unix(), "nbf": now.Add(-10 * time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(), "repository": "acme/shop",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (in *installation) exchange(token string) error {
	_, err := in.CITokens.Exchange(in.t.Context(), citokens.Presented{NamespaceID: string(in.namespace), Token: token})
	return err
}

func (in *installation) refuses(what, token string) {
	in.t.Helper()
	if err := in.exchange(token); err == nil || err.Error() != citoken.ErrRefused().Error() {
		in.t.Errorf("%s: %v", what, err)
	}
}

func (in *installation) takes(what, token string) {
	in.t.Helper()
	if err := in.exchange(token); err != nil {
		in.t.Errorf("%s: %v", what, err)
	}
}

func TestTokensOfARealIssuer(t *testing.T) {
	in := install(t)
	other := start(t)
	at := func(d time.Duration) int64 { return in.clock.Now().Add(d).Unix() }
	for what, change := range map[string]map[string]any{
		"another audience":         {"aud": "https://other.example.org"},
		"no audience":              {"aud": nil},
		"an audience beside ours":  {"aud": []string{audience, "https://other.example.org"}},
		"another organisation":     {"sub": "repo:evil/shop:ref:refs/heads/main"},
		"a like organisation":      {"sub": "repo:acme-evil/shop:ref:refs/heads/main"},
		"another repository":       {"sub": "repo:acme/shop2:ref:refs/heads/main"},
		"another kind of run":      {"sub": "repo:acme/shop:pull_request"},
		"a branch with more":       {"sub": "repo:acme/shop:ref:refs/heads/main:environment:prod"},
		"no subject":               {"sub": nil},
		"an expired one":           {"exp": at(0)},
		"one without end":          {"exp": nil},
		"one that ends in a month": {"exp": at(30 * 24 * time.Hour)},
		"one that begins later":    {"nbf": at(2 * time.Minute)},
		"one issued later":         {"iat": at(2 * time.Minute)},
		"another issuer":           {"iss": other.URL},
		"no issuer":                {"iss": nil},
	} {
		in.refuses(what, in.issuer.Token(in.claims(change)))
	}
	key, kid := in.issuer.Key()
	whole := jose.JSONWebKey{Key: key, KeyID: kid}
	public := whole.Public()
	published := check.Must(x509.MarshalPKIXPublicKey(public.Key))(t)
	in.refuses("signed with what is published", oidcissuer.Sign(published, kid, in.claims(nil)))
	in.refuses("algorithm none", unsigned("none", kid, "", in.claims(nil)))
	in.refuses("signed by another issuer", other.Token(in.claims(nil)))
	in.takes("a good one", in.issuer.Token(in.claims(nil)))
	in.takes("a good one with a list of one audience", in.issuer.Token(in.claims(map[string]any{"aud": []string{audience}})))
	in.takes("a good one without an ID", in.issuer.Token(in.claims(map[string]any{"jti": nil})))
}

// One token, in whatever form: without an ID, what was signed is its name.
func TestATokenOfARealIssuerWorksOnce(t *testing.T) {
	in := install(t)
	for _, change := range []map[string]any{nil, {"jti": nil}} {
		token := in.issuer.Token(in.claims(change))
		var won atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if in.exchange(token) == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("a token has made %d keys", won.Load())
		}
		in.refuses("again", token)
		last := token[len(token)-1:]
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if string(c) != last {
				in.refuses("with other idle bits at its end", token[:len(token)-1]+string(c))
			}
		}
		in.refuses("with padding", token+"==")
		parts := strings.Split(token, ".")
		in.refuses("as JSON", fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, parts[1], parts[0], parts[2]))
	}
	in.clock.Advance(time.Second)
	signed := in.claims(map[string]any{"jti": nil})
	in.takes("without an ID", in.issuer.Token(signed))
	in.refuses("signed anew with the same ID", in.issuer.Token(in.claims(map[string]any{"jti": "1"})))
	in.takes("another one of the same second", in.issuer.Token(in.claims(map[string]any{"jti": nil, "run": 2})))
	in.refuses("again, with another signature of the same words", in.issuer.Token(signed))
}

func TestKeysOfARealIssuerChange(t *testing.T) {
	in := install(t)
	in.takes("with the first key", in.issuer.Token(in.claims(nil)))
	var old []string
	for range 100 {
		old = append(old, in.issuer.Token(in.claims(nil)))
	}
	in.clock.Advance(pause)
	in.issuer.Rotate(jose.RS256)
	in.takes("with the second key", in.issuer.Token(in.claims(nil)))
	// The library answers with new keys a moment before it puts them in the place of the former ones.
	for len(old) > 1 && in.exchange(old[0]) == nil {
		old = old[1:]
	}
	in.refuses("with the first key, which was withdrawn", old[len(old)-1])
	in.issuer.Stop()
	in.takes("while the issuer is down", in.issuer.Token(in.claims(nil)))
	in.clock.Advance(keysKept)
	in.takes("while it is down, with keys that it was to be asked for again", in.issuer.Token(in.claims(nil)))
	in.clock.Advance(keysOutlive)
	in.refuses("after its keys have become old", in.issuer.Token(in.claims(nil)))
}
