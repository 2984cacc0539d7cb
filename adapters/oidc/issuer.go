package oidc

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/pgherd/pgherd/core/citoken"
)

// issuer is what is known of an issuer.
type issuer struct {
	url       string
	transport http.RoundTripper
	now       func() time.Time

	mu      sync.Mutex
	inside  int
	says    configuration
	set     *keySet   // of the configuration that was read last; nil before
	why     error     // it could not be read, the last time
	until   time.Time // when to read that again
	next    time.Time // when to try again after it could not be read
	reading chan struct{}
}

// configuration is what an issuer says of itself.
type configuration struct {
	Keys      string   `json:"jwks_uri"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	UserInfo  string   `json:"userinfo_endpoint"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
	// NamesItself says that each answer has its issuer (RFC 9207).
	NamesItself bool `json:"authorization_response_iss_parameter_supported"`
}

// enter takes one of the places of those who look at the issuer's tokens.
func (i *issuer) enter() (leave func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inside >= maxWaiting {
		return nil, citoken.NotAsked
	}
	i.inside++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.inside--
	}, nil
}

// keys returns the issuer's keys. Of many who ask at the same time, the first has the configuration read, and the others wait for
// that: nobody waits for a second attempt.
func (i *issuer) keys(ctx context.Context) (*keySet, error) {
	set, reading := i.known()
	if reading == nil {
		return found(set)
	}
	select {
	case <-reading:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	set, _ = i.known()
	return found(set)
}

func found(set *keySet) (*keySet, error) {
	if set == nil {
		return nil, citoken.NotAsked
	}
	return set, nil
}

// known returns the keys, nil where there are none to be had, or what to wait for.
func (i *issuer) known() (set *keySet, reading <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	switch {
	case i.set != nil && within(now, i.until, keysKept):
		return i.set, nil
	case i.reading == nil && within(now, i.next, pause):
		return i.outlived(now), nil
	case i.reading == nil:
		i.reading = make(chan struct{})
		go i.read()
	}
	return nil, i.reading
}

// outlived returns the keys that were read last, where the issuer has not answered since for no longer than keysOutlive.
func (i *issuer) outlived(now time.Time) *keySet {
	if i.set != nil && within(now, i.until.Add(keysOutlive), keysKept+keysOutlive) {
		return i.set
	}
	return nil
}

// read reads the configuration. It outlives the request that began it, as others wait too; its own time is bounded.
func (i *issuer) read() {
	says, err := i.discover()
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if i.why = err; err == nil {
		i.says = says
		i.set = newKeySet(says.Keys, i.transport, i.now, i.set, now.Add(keysOutlive))
		i.until = now.Add(keysKept)
	} else {
		i.next = now.Add(pause)
	}
	close(i.reading)
	i.reading = nil
}

// discover reads the configuration. The keys are read when a token needs them.
func (i *issuer) discover() (says configuration, err error) {
	ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: i.transport})
	provider, err := oidc.NewProvider(ctx, i.url) // which checks that the document is this issuer's
	if err != nil {
		return says, err
	}
	return says, provider.Claims(&says)
}

// last is what the issuer said of itself when it last answered, and why it did not answer since.
func (i *issuer) last() (says configuration, why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.says, i.why
}
