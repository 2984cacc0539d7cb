package oidc

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// keySet are the keys of an issuer, which are asked for where a token has one that is not known.
type keySet struct {
	remote *oidc.RemoteKeySet
	pace   *paced

	former *keySet // the last before whose keys were read; nil where there is none
	until  time.Time
}

// newKeySet makes a set of keys that nobody has asked for yet. As long as they cannot be had, those of the former count, until a
// time.
func newKeySet(url string, by http.RoundTripper, now func() time.Time, former *keySet, until time.Time) *keySet {
	pace := &paced{RoundTripper: by, now: now}
	ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: pace})
	k := &keySet{remote: oidc.NewRemoteKeySet(ctx, url), pace: pace, former: former, until: until}
	if former != nil && !former.pace.answered.Load() {
		k.former, k.until = former.former, former.until
	}
	return k
}

// joined is how long to wait before the library is asked again, where it may have given the result of a request that had ended.
const joined = time.Millisecond

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.verify(ctx, token)
	if err == nil || k.pace.answered.Load() {
		return payload, err
	}
	if k.former != nil && within(k.pace.now(), k.until, keysOutlive) {
		return k.former.VerifySignature(ctx, token)
	}
	return nil, errNotAnswered
}

// verify asks again where the library gave the result of a request that was not sent and one may be sent by now, or was sent
// meanwhile. That ends when one is sent, or with ctx.
func (k *keySet) verify(ctx context.Context, token string) ([]byte, error) {
	for {
		before := k.pace.sent.Load()
		payload, err := k.remote.VerifySignature(ctx, token)
		if !errors.Is(err, errAskedLately) || !k.pace.due() && k.pace.sent.Load() == before {
			return payload, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(joined):
		}
	}
}

// errAskedLately means that an issuer was asked for its keys a moment ago.
var errAskedLately = errors.New("the issuer was asked for its keys lately")

// paced lets a request pass now and then: whoever presents tokens with made-up keys must not make us ask for each.
type paced struct {
	http.RoundTripper
	now func() time.Time

	answered atomic.Bool  // once
	sent     atomic.Int64 // requests that passed

	mu   sync.Mutex
	next time.Time
}

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.pass() {
		return nil, errAskedLately
	}
	res, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		p.answered.Store(true)
	}
	return res, err
}

func (p *paced) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if within(now, p.next, pause) {
		return false
	}
	p.next = now.Add(pause)
	p.sent.Add(1)
	return true
}

// due reports whether a request would pass.
func (p *paced) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !within(p.now(), p.next, pause)
}

// within reports whether a time is yet to come, and not farther than it was set: clocks are moved back.
func within(now, until time.Time, atMost time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= atMost
}
