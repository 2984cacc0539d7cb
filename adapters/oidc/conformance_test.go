package oidc

import (
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeclock"
)

func TestConformance(t *testing.T) {
	conformance.TokenVerifier(t, func(t *testing.T) conformance.VerifierFixture {
		clock := fakeclock.New()
		by := map[string]*oidcissuer.Issuer{}
		var f conformance.VerifierFixture
		var ca []byte
		for n := range f.Issuers {
			i := start(t)
			by[i.URL], f.Issuers[n], ca = i, i.URL, append(ca, i.CA...)
		}
		f.Verifier = local(t, clock, ca)
		f.Token = func(c citoken.Claims) string { return by[c.Issuer].Token(payload(c)) }
		f.Rotate = func(url string) {
			by[url].Rotate(jose.RS256)
			clock.Advance(pause)
		}
		f.Stop = func(url string) { by[url].Stop() }
		f.Silence = func(url string) func() { return by[url].Silence() }
		return f
	})
}

func start(t *testing.T) *oidcissuer.Issuer {
	t.Helper()
	i := oidcissuer.Start()
	t.Cleanup(i.Stop)
	return i
}

// local is a verifier that may ask issuers on this machine.
func local(t *testing.T, clock *fakeclock.Clock, ca []byte) *Verifier {
	t.Helper()
	return check.Must(New(Options{Policy: webhook.Policy{AllowPrivate: true}, ExtraCA: ca, Clock: clock}))(t)
}

// payload is what a token says, as its issuer writes it.
func payload(c citoken.Claims) map[string]any {
	p := map[string]any{"iss": c.Issuer}
	if c.Subject != "" {
		p["sub"] = c.Subject
	}
	if len(c.Audience) == 1 {
		p["aud"] = c.Audience[0]
	} else if len(c.Audience) > 1 {
		p["aud"] = c.Audience
	}
	if c.ID != "" {
		p["jti"] = c.ID
	}
	for name, at := range map[string]time.Time{"exp": c.ExpiresAt, "nbf": c.NotBefore, "iat": c.IssuedAt} {
		if !at.IsZero() {
			p[name] = at.Unix()
		}
	}
	return p
}
