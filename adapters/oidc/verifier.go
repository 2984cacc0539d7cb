// Package oidc implements ports.TokenVerifier and ports.SignOn: it asks issuers of OIDC tokens for their keys, and keeps them for
// a while.
//
// The operator names the issuers, but what they answer names further URLs, so each is treated as a customer's: https only, an
// address that the guard allows, no redirect, no proxy, a bounded document in a bounded time. Each issuer is asked at most once
// in a while for its configuration, and likewise for its keys, whatever tokens come. Those who wait for one issuer are bounded,
// and hold up nobody who waits for another.
//
// No error of the library is passed on: its texts quote tokens and documents.
package oidc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// algorithms are those with a public key. With any other one, whoever knows what the issuer publishes could sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

const (
	// keysKept is how long keys are used before they are asked for again: so long, one that an issuer has withdrawn still counts.
	keysKept = 15 * time.Minute
	// keysOutlive is how long they are used beyond that, where the issuer does not answer.
	keysOutlive = 45 * time.Minute
	// pause is how long an issuer is not asked again. A new key is found within it.
	pause = 10 * time.Second
	// timeout bounds one request to an issuer.
	timeout = 5 * time.Second
	// maxWaiting bounds the tokens of one issuer that are looked at, or wait for its keys, at a time.
	maxWaiting = 256
	// maxIssuers bounds how many are remembered. Beyond that all are forgotten, and asked anew.
	maxIssuers = 1000
)

// Options say how issuers are asked. Of a verifier all hosts but the development host leave Policy and ExtraCA as they are.
type Options struct {
	Policy   webhook.Policy
	ExtraCA  []byte           // PEM certificates trusted beside the system's
	Resolver guarded.Resolver // nil: the system's
	Timeout  time.Duration    // of one request to an issuer; 0: 5 s
	Clock    ports.Clock
}

// Verifier implements ports.TokenVerifier. It is safe for concurrent use.
type Verifier struct {
	transport *transport
	now       func() time.Time

	mu      sync.Mutex
	issuers map[string]*issuer
}

var _ ports.TokenVerifier = (*Verifier)(nil)

// New makes a verifier, which asks nobody yet. It fails where ExtraCA cannot be used.
func New(o Options) (*Verifier, error) {
	roots, err := guarded.Roots(o.ExtraCA)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = timeout
	}
	return &Verifier{
		transport: newTransport(o, roots), now: o.Clock.Now, issuers: map[string]*issuer{},
	}, nil
}

// Verify implements ports.TokenVerifier.
func (v *Verifier) Verify(ctx context.Context, token string, issuers []string) (citoken.Claims, error) {
	presented, err := open(token)
	if err != nil {
		return citoken.Claims{}, err
	}
	if !slices.Contains(issuers, presented.issuer) {
		return citoken.Claims{}, citoken.NotSigned
	}
	by := v.issuer(presented.issuer)
	leave, err := by.enter()
	if err != nil {
		return citoken.Claims{}, err
	}
	defer leave()
	keys, err := by.keys(ctx)
	if err != nil {
		return citoken.Claims{}, err
	}
	return verify(ctx, token, presented, keys)
}

func (v *Verifier) issuer(url string) *issuer {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.issuers[url]
	if i == nil {
		if len(v.issuers) >= maxIssuers {
			clear(v.issuers)
		}
		i = &issuer{url: url, transport: v.transport, now: v.now}
		v.issuers[url] = i
	}
	return i
}

// verify returns what a token says whose signature is the issuer's.
func verify(ctx context.Context, token string, p presented, keys oidc.KeySet) (citoken.Claims, error) {
	found, err := signed(ctx, token, p, keys)
	if err != nil {
		return citoken.Claims{}, err
	}
	return p.claims(found)
}

// signed checks the signature. Whether the token is valid now, for whom, and whose it is, the caller decides by a rule of its
// own: the library would let pass what begins in five minutes, and what ends in years.
func signed(ctx context.Context, token string, p presented, keys oidc.KeySet) (*oidc.IDToken, error) {
	asked := &asking{KeySet: keys}
	found, err := oidc.NewVerifier(p.issuer, asked, &oidc.Config{
		SupportedSigningAlgs: algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true,
	}).Verify(ctx, token)
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.failed:
		return nil, citoken.NotAsked
	}
	return nil, citoken.NotSigned
}

// asking remembers whether the keys could not be asked for.
type asking struct {
	oidc.KeySet
	failed bool
}

// VerifySignature implements oidc.KeySet.
func (a *asking) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := a.KeySet.VerifySignature(ctx, token)
	a.failed = errors.Is(err, errNotAnswered)
	return payload, err
}
